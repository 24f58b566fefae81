import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embedMany, generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import { early, hub, report, thrown, weather } from './report.mjs';

const provider = createOpenAICompatible({
  name: 'hub',
  baseURL: `${hub.url}/v1`,
  apiKey: hub.key,
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const scripted = (prompt, more = {}) => ({ model: provider('scripted'), prompt, maxRetries: 0, ...more });
const tiny = (more = {}) => ({
  model: provider('tiny'),
  prompt: 'Name a colour.',
  temperature: 0,
  maxOutputTokens: 8,
  maxRetries: 0,
  ...more,
});

// Every part of a stream: an error is a part of it and not thrown.
async function parts(given) {
  const result = streamText({ ...given, onError: () => {} });
  const seen = [];
  for await (const part of result.fullStream) seen.push(part);
  const finish = seen.find((part) => part.type === 'finish');
  return {
    text: seen.filter((part) => part.type === 'text-delta').map((part) => part.text).join(''),
    calls: seen.filter((part) => part.type === 'tool-call').map((part) => [part.toolCallId, part.toolName, part.input]),
    errors: seen.filter((part) => part.type === 'error').map((part) => thrown(part.error)),
    finish: finish?.finishReason ?? null,
    usage: finish && [finish.totalUsage.inputTokens, finish.totalUsage.outputTokens, finish.totalUsage.totalTokens],
  };
}

const weatherTool = (execute) => ({
  weather: tool({ description: 'Weather in a town', inputSchema: jsonSchema(weather()), execute }),
});

await report({
  chat: async () => {
    const answer = await generateText(tiny());
    return { text: answer.text, finish: answer.finishReason, usage: [answer.usage.inputTokens, answer.usage.outputTokens] };
  },
  stream: async () => parts(tiny()),
  unicode: async () => parts(scripted('[unicode]')),
  comments: async () => parts(scripted('[comments]')),
  slow: early(async () => parts(scripted('[slow]'))),
  breaks: async () => parts(scripted('[breaks]')),
  fails: async () => parts(scripted('[fails]')),
  calls: async () => parts(scripted('[two-calls]', { tools: weatherTool() })),
  rounds: async () => {
    const tools = weatherTool(async ({ town }) => `sun in ${town}`);
    const answer = await generateText(scripted('[two-calls]', { tools, stopWhen: stepCountIs(3) }));
    return { text: answer.text, steps: answer.steps.length };
  },
  completion: async () => {
    const model = provider.completionModel('tiny');
    const asked = { model, prompt: 'The colours of the rainbow are', temperature: 0, maxOutputTokens: 8, maxRetries: 0 };
    const whole = await generateText(asked);
    return { text: whole.text, finish: whole.finishReason, streamed: await parts(asked) };
  },
  embed: async () => {
    const model = provider.textEmbeddingModel('tiny');
    const { embeddings, usage } = await embedMany({ model, values: ['red', 'blue'], maxRetries: 0 });
    return { sizes: embeddings.map((each) => each.length), usage };
  },
  object: async () => {
    const schema = jsonSchema({
      type: 'object',
      properties: { colour: { enum: ['red', 'blue'] } },
      required: ['colour'],
      additionalProperties: false,
    });
    return (await generateObject(tiny({ maxOutputTokens: 30, schema }))).object;
  },
  wrongKey: async () => {
    const locked = createOpenAICompatible({ name: 'hub', baseURL: `${hub.url}/v1`, apiKey: 'wrong' });
    return generateText({ ...tiny(), model: locked('tiny') });
  },
  overflow: async () => generateText(tiny({ prompt: 'word '.repeat(3000) })),
});
