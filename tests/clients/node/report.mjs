// Runs steps one after another and prints what each returned, or threw, as one line of JSON.

export const hub = {
  url: process.env.HUB_URL,
  key: process.env.HUB_KEY,
  slashed: process.env.SLASHED,
  spent: process.env.HUB_KEY_SPENT,
  single: process.env.HUB_KEY_SINGLE,
};

export function thrown(error) {
  return {
    thrown: error.constructor.name,
    message: error.message,
    status: error.status ?? error.statusCode ?? error.status_code ?? null,
    code: error.code ?? null,
    type: error.type ?? null,
    param: error.param ?? null,
    requestId: error.requestID ?? null,
  };
}

// A fetch that notes what came back, as a client's own option.
export function noting() {
  const seen = [];
  const noted = async (...given) => {
    const response = await fetch(...given);
    const header = (name) => response.headers.get(name);
    seen.push({ status: response.status, after: header('retry-after'), retry: header('x-should-retry') });
    return response;
  };
  return { fetch: noted, seen };
}

// A step that is begun before the others, because it mostly waits.
export function early(step) {
  const begun = step();
  begun.catch(() => {});
  return () => begun;
}

export async function report(steps) {
  const seen = {};
  for (const [name, step] of Object.entries(steps)) {
    try {
      seen[name] = await step();
    } catch (error) {
      seen[name] = thrown(error);
    }
  }
  console.log(JSON.stringify(seen));
}

export function weather() {
  return {
    type: 'object',
    properties: { town: { type: 'string' } },
    required: ['town'],
    additionalProperties: false,
  };
}
