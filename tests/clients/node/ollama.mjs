import { Ollama } from 'ollama';
import { early, hub, report, thrown, weather } from './report.mjs';

const client = new Ollama({ host: hub.url, headers: { Authorization: `Bearer ${hub.key}` } });
const say = (content, more = {}) => ({ model: 'scripted', messages: [{ role: 'user', content }], ...more });
const tiny = (more = {}) => ({
  model: 'tiny',
  messages: [{ role: 'user', content: 'Name a colour.' }],
  options: { num_predict: 8, temperature: 0 },
  ...more,
});
const tools = [
  { type: 'function', function: { name: 'weather', description: 'Weather in a town', parameters: weather() } },
];
const long = [{ role: 'user', content: 'word '.repeat(3000) }];

const textOf = (line) => line.message?.content ?? line.response ?? '';

// A stream's text, calls and last line, and how it failed where it did.
async function lines(asked) {
  const seen = [];
  let failed = null;
  try {
    for await (const line of await asked) seen.push(line);
  } catch (error) {
    failed = thrown(error);
  }
  const calls = seen.flatMap((line) => line.message?.tool_calls ?? []);
  return {
    text: seen.map(textOf).join(''),
    calls: calls.map((call) => call.function),
    last: seen.at(-1) ?? null,
    done: seen.filter((line) => line.done).length,
    count: seen.length,
    keys: [...new Set(seen.flatMap((line) => Object.keys(line)))].sort(),
    failed,
  };
}

await report({
  version: async () => client.version(),
  list: async () => (await client.list()).models,
  ps: async () => (await client.ps()).models,
  show: async () => {
    const shown = await client.show({ model: 'tiny' });
    return { ...shown, keys: Object.keys(shown) };
  },
  chat: async () => client.chat(tiny()),
  stream: async () => lines(client.chat(tiny({ stream: true }))),
  generate: async () => client.generate({ model: 'tiny', prompt: 'Name a colour.', options: tiny().options }),
  generateStream: async () =>
    lines(client.generate({ model: 'tiny', prompt: 'Name a colour.', options: tiny().options, stream: true })),
  format: async () => {
    const schema = { type: 'object', properties: { colour: { enum: ['red', 'blue'] } }, required: ['colour'] };
    return (await client.chat(tiny({ format: schema, options: { num_predict: 40 } }))).message.content;
  },
  unicode: async () => lines(client.chat(say('[unicode]', { stream: true }))),
  comments: async () => lines(client.chat(say('[comments]', { stream: true }))),
  slow: early(async () => lines(client.chat(say('[slow]', { stream: true })))),
  breaks: async () => lines(client.chat(say('[breaks]', { stream: true }))),
  fails: async () => lines(client.chat(say('[fails]', { stream: true }))),
  calls: async () => client.chat(say('[two-calls]', { tools })),
  callsStream: async () => lines(client.chat(say('[two-calls]', { tools, stream: true }))),
  round: async () => {
    const asked = await client.chat(say('[two-calls]', { tools }));
    const results = asked.message.tool_calls.map((call) => ({
      role: 'tool',
      tool_name: call.function.name,
      content: `sun in ${call.function.arguments.town}`,
    }));
    const messages = [{ role: 'user', content: '[two-calls]' }, asked.message, ...results];
    return (await client.chat({ model: 'scripted', messages, tools })).message.content;
  },
  embed: async () => {
    const { embeddings, prompt_eval_count } = await client.embed({ model: 'tiny', input: ['red', 'blue'] });
    const { embedding } = await client.embeddings({ model: 'tiny', prompt: 'red' });
    const along = embedding.reduce((sum, value, at) => sum + value * embeddings[0][at], 0);
    const cosine = along / Math.hypot(...embedding) / Math.hypot(...embeddings[0]);
    return { sizes: embeddings.map((each) => each.length), size: embedding.length, cosine, tokens: prompt_eval_count };
  },
  load: async () => client.chat({ model: 'small', messages: [] }),
  unload: async () => client.generate({ model: 'small', prompt: '', keep_alive: 0 }),
  abort: async () => {
    const headers = { Authorization: `Bearer ${hub.key}`, 'x-request-id': 'ollama-js-abort' };
    const leaving = new Ollama({ host: hub.url, headers });
    const stream = await leaving.chat(say('[endless]', { stream: true }));
    let count = 0;
    try {
      for await (const _ of stream) if (++count === 4) leaving.abort();
    } catch (error) {
      return { count, name: error.name };
    }
    return { count };
  },
  unknown: async () => client.chat(tiny({ model: 'nobody' })),
  unknownShow: async () => client.show({ model: 'nobody' }),
  wrongKey: async () => new Ollama({ host: hub.url, headers: { Authorization: 'Bearer wrong' } }).list(),
  wrongType: async () => client.chat(tiny({ options: { temperature: 'hot' } })),
  overflow: async () => client.chat(tiny({ messages: long })),
  overflowStream: async () => lines(client.chat(tiny({ messages: long, stream: true }))),
  permanent: async () => client.chat(tiny({ model: 'big' })),
  pull: async () => client.pull({ model: 'llama3' }),
  copy: async () => client.copy({ source: 'tiny', destination: 'other' }),
  remove: async () => client.delete({ model: 'tiny' }),
});
