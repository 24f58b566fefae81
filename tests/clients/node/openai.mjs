import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { early, hub, noting, report, thrown, weather } from './report.mjs';

const options = { baseURL: `${hub.url}/v1`, apiKey: hub.key, maxRetries: 0 };
const client = new OpenAI(options);
const say = (content, more = {}) => ({
  model: 'scripted',
  messages: [{ role: 'user', content }],
  ...more,
});
const tiny = (more = {}) => ({
  model: 'tiny',
  messages: [{ role: 'user', content: 'Name a colour.' }],
  max_completion_tokens: 8,
  temperature: 0,
  ...more,
});
const tools = [
  { type: 'function', function: { name: 'weather', description: 'Weather in a town', parameters: weather() } },
];

const bare = (more = {}) => ({
  model: 'tiny',
  prompt: 'The colours of the rainbow are',
  max_tokens: 8,
  temperature: 0,
  ...more,
});

// A call that the model must make, whole and streamed.
async function forced(choice) {
  const body = tiny({ tools, tool_choice: choice, max_completion_tokens: 60 });
  const whole = (await client.chat.completions.create(body)).choices[0];
  const stream = await client.chat.completions.stream(body).finalChatCompletion();
  return { whole, streamed: stream.choices[0] };
}

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  const choices = chunks.flatMap((chunk) => chunk.choices);
  return {
    text: choices.map((choice) => choice.delta.content ?? '').join(''),
    finish: choices.map((choice) => choice.finish_reason).filter(Boolean),
    ids: new Set(chunks.map((chunk) => chunk.id)).size,
    usages: chunks.filter((chunk) => chunk.usage).map((chunk) => chunk.usage),
    choicesOfUsage: chunks.filter((chunk) => chunk.usage).map((chunk) => chunk.choices),
    roles: choices.map((choice) => choice.delta.role).filter(Boolean),
    keys: [...new Set(chunks.flatMap((chunk) => Object.keys(chunk)))].sort(),
  };
}

const streamed = async (body) => collect(await client.chat.completions.create({ ...body, stream: true }));

// What was delivered before a stream failed, and how it failed.
async function failing(body) {
  let text = '';
  try {
    for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
      text += chunk.choices[0]?.delta?.content ?? '';
    }
  } catch (error) {
    return { text, ...thrown(error) };
  }
  return { text };
}

async function attempts(body, maxRetries, more = {}) {
  const { fetch, seen } = noting();
  const eager = new OpenAI({ ...options, maxRetries, fetch, ...more });
  const started = performance.now();
  try {
    await eager.chat.completions.create(body);
  } catch (error) {
    return { seen, seconds: (performance.now() - started) / 1000, ...thrown(error) };
  }
  return { seen };
}

// A stream of /v1/responses: its events by type, and the response that the last one carries.
async function respond(body) {
  const seen = [];
  try {
    for await (const event of await client.responses.create({ ...body, stream: true })) seen.push(event);
  } catch (error) {
    return { types: seen.map((event) => event.type), ...thrown(error) };
  }
  return {
    types: seen.map((event) => event.type),
    text: seen.filter((event) => event.type === 'response.output_text.delta').map((event) => event.delta).join(''),
    ordered: seen.every((event, number) => event.sequence_number === number),
    last: seen.at(-1)?.response ?? seen.at(-1) ?? null,
  };
}
const answering = (input, more = {}) => ({ model: 'scripted', input, ...more });
const flat = tools.map((tool) => ({ type: 'function', ...tool.function, strict: false }));

await report({
  list: async () => (await client.models.list()).data.map((model) => model.id).sort(),
  retrieve: async () => (await client.models.retrieve(hub.slashed)).id,
  unknown: async () => client.models.retrieve('nobody'),
  wrongKey: async () => new OpenAI({ ...options, apiKey: 'wrong' }).models.list(),
  chat: async () => {
    const { data, response } = await client.chat.completions.create(tiny()).withResponse();
    return { ...data, requestIdHeader: response.headers.get('x-request-id'), requestId: data._request_id };
  },
  stream: async () => streamed(tiny()),
  usage: async () => streamed(tiny({ stream_options: { include_usage: true } })),
  stop: async () => {
    const whole = (await client.chat.completions.create(tiny({ max_completion_tokens: 24 }))).choices[0].message.content;
    const word = whole.trim().split(/\s+/)[3];
    const bounded = tiny({ max_completion_tokens: 24, stop: [word] });
    const cut = (await client.chat.completions.create(bounded)).choices[0];
    return { whole, word, cut: cut.message.content, finish: cut.finish_reason, streamed: await streamed(bounded) };
  },
  nulls: async () => {
    const nothing = { stop: null, seed: null, tools: null, response_format: null, stream_options: null, foo: 1 };
    return (await client.chat.completions.create(say('x', nothing))).choices[0].message.content;
  },
  wrongType: async () => client.chat.completions.create(say('x', { temperature: 'hot' })),
  overflow: async () => client.chat.completions.create(tiny({ messages: [{ role: 'user', content: 'word '.repeat(3000) }] })),
  overflowStream: async () => failing(tiny({ messages: [{ role: 'user', content: 'word '.repeat(3000) }] })),
  cut: async () => streamed(say('[cut]')),
  unicode: async () => (await streamed(say('[unicode]'))).text,
  comments: async () => streamed(say('[comments]')),
  slow: early(async () => streamed(say('[slow]'))),
  breaks: async () => failing(say('[breaks]')),
  fails: async () => failing(say('[fails]')),
  calls: async () => (await client.chat.completions.create(say('[two-calls]', { tools }))).choices[0],
  helper: async () => {
    const stream = client.chat.completions.stream(say('[two-calls]', { tools, stream_options: { include_usage: true } }));
    const final = await stream.finalChatCompletion();
    return { choice: final.choices[0], usage: final.usage };
  },
  runTools: async () => {
    const asked = [];
    const runner = client.chat.completions.runTools(
      say('[two-calls]', {
        stream: true,
        tools: [
          {
            type: 'function',
            function: {
              name: 'weather',
              description: 'Weather in a town',
              parameters: weather(),
              parse: JSON.parse,
              function: ({ town }) => {
                asked.push(town);
                return `sun in ${town}`;
              },
            },
          },
        ],
      }),
    );
    return { text: await runner.finalContent(), asked };
  },
  parse: async () => {
    const format = zodResponseFormat(z.object({ colour: z.enum(['red', 'blue']) }), 'answer');
    const answer = await client.chat.completions.parse(tiny({ max_completion_tokens: 30, response_format: format }));
    return answer.choices[0].message.parsed;
  },
  abort: async () => {
    const body = tiny({ max_completion_tokens: 600, logit_bias: { 2: -100 }, stream: true });
    const stream = await client.chat.completions.create(body, { headers: { 'x-request-id': 'openai-node-abort' } });
    let chunks = 0;
    for await (const _ of stream) if (++chunks === 4) stream.controller.abort();
    return { chunks };
  },
  response: async () => {
    const response = await client.responses.create({ model: 'tiny', input: 'Name a colour.', temperature: 0, max_output_tokens: 16 });
    return { ...response, output_text: response.output_text };
  },
  responseStream: async () => respond({ model: 'tiny', input: 'Name a colour.', temperature: 0, max_output_tokens: 16 }),
  responseCalls: async () => (await client.responses.create(answering('[two-calls]', { tools: flat }))).output,
  responseRound: async () => {
    const asked = await client.responses.create(answering('[two-calls]', { tools: flat }));
    const results = asked.output.map((call) => ({
      type: 'function_call_output',
      call_id: call.call_id,
      output: `sun in ${JSON.parse(call.arguments).town}`,
    }));
    const input = [{ role: 'user', content: '[two-calls]' }, ...asked.output, ...results];
    return (await client.responses.create(answering(input, { tools: flat }))).output_text;
  },
  responseHelper: async () => {
    const stream = client.responses.stream(answering('[two-calls]', { tools: flat }));
    return (await stream.finalResponse()).output.map((call) => [call.call_id, call.name, call.arguments]);
  },
  responseSlow: early(async () => respond(answering('[slow]'))),
  responseFails: async () => respond(answering('[fails]')),
  responseOverflow: async () => client.responses.create({ model: 'tiny', input: 'word '.repeat(3000) }),
  completion: async () => client.completions.create(bare()),
  completionStream: async () => {
    const seen = { text: '', finish: [], usages: [] };
    for await (const chunk of await client.completions.create(bare({ stream: true, stream_options: { include_usage: true } }))) {
      for (const choice of chunk.choices) {
        seen.text += choice.text;
        if (choice.finish_reason) seen.finish.push(choice.finish_reason);
      }
      if (chunk.usage) seen.usages.push([chunk.choices, chunk.usage]);
    }
    return seen;
  },
  completionStop: async () => {
    const whole = (await client.completions.create(bare({ max_tokens: 24 }))).choices[0].text;
    const word = whole.trim().split(/\s+/)[3];
    const cut = (await client.completions.create(bare({ max_tokens: 24, stop: word }))).choices[0];
    return { whole, word, cut: cut.text, finish: cut.finish_reason };
  },
  completions: async () => {
    const both = await client.completions.create(bare({ prompt: ['One, two,', 'Red, green,'] }));
    return { indexes: both.choices.map((choice) => choice.index), usage: both.usage };
  },
  embed: async () => {
    const input = ['red', 'blue', 'a much longer text about the colour of the sea'];
    const vectors = async (encoding_format) => client.embeddings.create({ model: 'tiny', input, encoding_format });
    // The library's own default is base64, which it decodes.
    const [packed, plain] = [await vectors(undefined), await vectors('float')];
    const off = packed.data.map((each, at) =>
      Math.max(...each.embedding.map((value, index) => Math.abs(value - plain.data[at].embedding[index]))),
    );
    return {
      sizes: packed.data.map((each) => each.embedding.length),
      sizesPlain: plain.data.map((each) => each.embedding.length),
      indexes: packed.data.map((each) => each.index),
      off: Math.max(...off),
      norm: Math.hypot(...plain.data[0].embedding),
      same: Math.max(...plain.data[0].embedding.map((value, at) => Math.abs(value - plain.data[1].embedding[at]))),
      usage: packed.usage,
    };
  },
  embedOne: async () => (await client.embeddings.create({ model: 'tiny', input: 'red' })).data.length,
  embedFormat: async () => client.embeddings.create({ model: 'tiny', input: 'red', encoding_format: 'int8' }),
  embedTokens: async () => client.embeddings.create({ model: 'tiny', input: [[1, 2, 3]] }),
  required: async () => forced('required'),
  byName: async () => forced({ type: 'function', function: { name: 'weather' } }),
  permanent: async () => attempts({ ...tiny(), model: 'big' }, 2),
  spent: async () => attempts(tiny(), 2, { apiKey: hub.spent }),
  // Two at once where one is allowed: the second comes through when it is told to come again.
  crowded: early(async () => {
    const { fetch, seen } = noting();
    const single = new OpenAI({ ...options, apiKey: hub.single, maxRetries: 2, fetch });
    const answers = await Promise.all([0, 1].map(() => single.chat.completions.create(say('[brief]'))));
    return { texts: answers.map((answer) => answer.choices[0].message.content), seen };
  }),
  again: early(async () => attempts({ ...tiny(), model: 'absent' }, 2)),
});
