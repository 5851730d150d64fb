// Every way in which a call can go wrong, as a sentence with a next step.

/** A failure as a person needs it: what happened, and what to do next. */
export class Problem extends Error {
  constructor(what, next, status) {
    super(what);
    this.next = next;
    this.status = status;
  }
}

const OR_TYPE = ' You can type meanwhile.';
export const MICROPHONE = {
  denied: ['The microphone is blocked for this page.', 'Allow it beside the address bar, then try again.' + OR_TYPE],
  none: ['No microphone was found.', 'Connect one, then try again.' + OR_TYPE],
  busy: ['The microphone is in use elsewhere.', 'Close the other program, then try again.' + OR_TYPE],
  insecure: ['Browsers give the microphone only to https pages and to localhost.', 'Open this page at such an address.' + OR_TYPE],
  lost: ['The microphone was lost.', 'Connect it again or choose another, then try again.' + OR_TYPE],
  failed: ['The microphone could not be opened.', 'Choose another one, or try again.' + OR_TYPE],
};

export const NO_LIBRARY = () =>
  new Problem('The call library did not load.', 'Check that you are online, then reload the page. On your own machine, `npm ci --prefix frontend` installs it.');
export const OLD_BROWSER = () =>
  new Problem('This browser cannot make calls.', 'Use a current Chrome, Edge, Firefox or Safari.');
export const SLOW_START = () =>
  new Problem('The call did not start within 15 seconds.', 'Check that the LiveKit server is running and that you are online, then try again.');
export const NO_AGENT = (more) =>
  new Problem('The agent did not join.', `Check that the agent is running, in the same LiveKit project as this page, and under the same LIVEKIT_AGENT_NAME. Then try again.${more ? ` (${more})` : ''}`);
export const FRAGILE_AGENT = () =>
  new Problem('The agent keeps dropping out.', "Look at the agent's log for the reason, then call again.");

/**
 * Asks the page's own server. Returns the parsed JSON, or null when there was none.
 * Throws a Problem: the server's own sentence where it gave one.
 */
export async function request(fetch, method, path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: body ? { 'Content-Type': 'application/json' } : {},
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(20_000),
    });
  } catch {
    throw new Problem("This page's server does not answer.", 'Check that token_server.py is running and that you are online, then try again.');
  }
  const data = await answer.json().catch(() => null);
  if (answer.ok) return data;
  const said = typeof data?.error === 'string' ? data.error.slice(0, 300) : `This page's server answered with status ${answer.status}.`;
  const seconds = Number(answer.headers.get('Retry-After'));
  const next = seconds > 0 ? `Try again in ${seconds} seconds.`
    : answer.status < 500 ? 'Reload the page, then try again.'
    : "Try again. If it stays like this, look at the server's log.";
  throw new Problem(said, next, answer.status);
}

/** Why a connect was refused. Only the reason is looked at: the error's message can hold the whole token. */
export function connectProblem(reason, reasons, url) {
  let host = 'The LiveKit server';
  try { host += ` ${new URL(url).host}`; } catch { /* an address that cannot be shown */ }
  switch (reason) {
    case reasons.NotAllowed:
      return new Problem(`${host} refused this page's token.`, 'Check that LIVEKIT_API_KEY and LIVEKIT_API_SECRET belong to LIVEKIT_URL and that the clocks agree, then try again.');
    case reasons.ServerUnreachable:
      return new Problem(`${host} cannot be reached.`, 'Check that it is running, that LIVEKIT_URL names it and that you are online, then try again.');
    case reasons.Timeout:
      return new Problem(`${host} does not answer.`, 'Check that LIVEKIT_URL names it and that it is running, then try again.');
    case reasons.WebSocket:
      return new Problem(`${host} turned the call away.`, 'If the call is open in another tab, close that one. Then try again.');
    default:
      return new Problem('The call could not be set up.', 'A firewall may be in the way. Try another network, then call again.');
  }
}

/** How a call that was cut ends: the phase, and the Problem if there is one to tell. */
export function endOf(reason, reasons) {
  switch (reason) {
    case reasons.CLIENT_INITIATED:
      return ['ended', null];
    case reasons.ROOM_DELETED:
    case reasons.ROOM_CLOSED:
      return ['ended', new Problem('The agent ended the call.', 'Call again whenever you like.')];
    case reasons.DUPLICATE_IDENTITY:
      return ['ended', new Problem('The call went on in another tab.', 'Go there, or call again from here.')];
    case reasons.PARTICIPANT_REMOVED:
      return ['failed', new Problem('The call was closed by the server.', 'Call again.')];
    case reasons.SERVER_SHUTDOWN:
      return ['failed', new Problem('The LiveKit server was shut down.', 'Wait until it is back, then call again.')];
    default:
      return ['failed', new Problem('The connection was lost and did not come back.', 'Check your network, then call again.')];
  }
}
