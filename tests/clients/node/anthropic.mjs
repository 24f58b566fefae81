import Anthropic from '@anthropic-ai/sdk';
import { early, hub, noting, report, thrown, weather } from './report.mjs';

const options = { baseURL: hub.url, apiKey: hub.key, maxRetries: 0 };
const client = new Anthropic(options);
const say = (content, more = {}) => ({
  model: 'scripted',
  max_tokens: 64,
  messages: [{ role: 'user', content }],
  ...more,
});
const tiny = (more = {}) => ({
  model: 'tiny',
  max_tokens: 8,
  temperature: 0,
  messages: [{ role: 'user', content: 'Name a colour.' }],
  ...more,
});
const tools = [{ name: 'weather', description: 'Weather in a town', input_schema: weather() }];
const long = [{ role: 'user', content: 'word '.repeat(3000) }];

// What the library's own helper makes of a stream, and how it failed where it did.
async function helped(body) {
  const stream = client.messages.stream(body);
  let text = '';
  stream.on('text', (piece) => { text += piece; });
  try {
    const message = await stream.finalMessage();
    return { text, content: message.content, stop: message.stop_reason, usage: message.usage };
  } catch (error) {
    return { text, ...thrown(error) };
  }
}

await report({
  whole: async () => client.messages.create(tiny()),
  stream: async () => helped(tiny()),
  system: async () => client.messages.create(tiny({ system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }] })),
  stop: async () => {
    const { content } = await client.messages.create(tiny({ max_tokens: 24 }));
    const word = content[0].text.trim().split(/\s+/)[3];
    const cut = await client.messages.create(tiny({ max_tokens: 24, stop_sequences: [word] }));
    return { whole: content[0].text, word, cut: cut.content[0].text, stop: cut.stop_reason, sequence: cut.stop_sequence };
  },
  unicode: async () => helped(say('[unicode]')),
  slow: early(async () => helped(say('[slow]'))),
  breaks: async () => helped(say('[breaks]')),
  fails: async () => helped(say('[fails]')),
  calls: async () => helped(say('[two-calls]', { tools })),
  round: async () => {
    const asked = await client.messages.create(say('[two-calls]', { tools }));
    const results = asked.content.map((call) => ({
      type: 'tool_result',
      tool_use_id: call.id,
      content: `sun in ${call.input.town}`,
    }));
    const messages = [
      { role: 'user', content: '[two-calls]' },
      { role: 'assistant', content: asked.content },
      { role: 'user', content: results },
    ];
    return (await client.messages.create(say('', { messages, tools }))).content;
  },
  count: async () => client.messages.countTokens({ model: 'tiny', messages: tiny().messages }),
  overflow: async () => client.messages.create(tiny({ messages: long })),
  unknown: async () => client.messages.create(tiny({ model: 'nobody' })),
  wrongKey: async () => new Anthropic({ ...options, apiKey: 'wrong' }).messages.create(tiny()),
  permanent: async () => {
    const { fetch, seen } = noting();
    try {
      await new Anthropic({ ...options, maxRetries: 2, fetch }).messages.create(tiny({ model: 'big' }));
    } catch (error) {
      return { seen, ...thrown(error) };
    }
    return { seen };
  },
});
