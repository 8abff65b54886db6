// The page: lists runs and follows one live. It only reads. Whatever an agent wrote is put in with textContent,
// so it is text; no markup is ever made from data.
"use strict";

const LIST_LIMIT = 100;
// Lines in the page at once; older ones are dropped, so that a long run cannot fill the tab.
const LINES = 1500;
// Characters of one event that are shown.
const TEXT = 4000;
// How long an answer may take.
const ANSWER_MS = 15000;
const ENDED = ["done", "failed", "stopped", "interrupted", "parked"];

const byId = (id) => document.getElementById(id);
let source = null; // the open EventSource
let view = 0; // grows with each change of view: an answer that comes late is dropped

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Agent text without terminal sequences and other control characters.
function plain(text) {
  const cut = text.length > TEXT ? text.slice(0, TEXT) + "…" : text;
  return cut
    .replace(/\u001b(\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\u0007\u001b]*(\u0007|\u001b\\)?|[ -/]*[0-~]?)/g, "")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "");
}

function show(name) {
  for (const id of ["loading", "signed-out", "failed", "list", "run"]) byId(id).hidden = id !== name;
}

function say(text) {
  const place = byId("link-state");
  if (place.textContent !== text) place.textContent = text;
}

class SignedOut extends Error {}

async function ask(path) {
  const answer = await fetch(path, {
    headers: { accept: "application/json" }, cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS),
  });
  if (answer.status === 401) throw new SignedOut();
  const body = await answer.json().catch(() => null);
  if (!answer.ok) throw new Error(body?.error?.message ?? `core answered ${answer.status}`);
  return body;
}

function close() {
  if (source) source.close();
  source = null;
}

function fail(error) {
  close();
  say("");
  if (error instanceof SignedOut) {
    document.title = "Sign in – Worca";
    show("signed-out");
    return;
  }
  const absent = error instanceof TypeError || error.name === "TimeoutError";
  byId("failed-why").textContent = absent
    ? "Is it running? In a terminal, worca container status shows it."
    : error.message;
  document.title = "Worca";
  show("failed");
}

// Opens a stream that comes back by itself. The browser retries a lost connection with Last-Event-ID; where it
// gives up (a refusal), we look at why and begin again.
function follow(path, mine, onEvent, onEnd) {
  close();
  const stream = new EventSource(path);
  source = stream;
  stream.onopen = () => { if (mine === view) say("Live"); };
  stream.onmessage = (message) => { if (mine === view) onEvent(JSON.parse(message.data)); };
  stream.addEventListener("end", (message) => {
    stream.close();
    if (mine === view && onEnd) onEnd(JSON.parse(message.data).status);
  });
  stream.onerror = () => {
    if (mine !== view) return stream.close();
    say("Core is away, trying again…");
    if (stream.readyState !== EventSource.CLOSED) return;
    setTimeout(() => { if (mine === view) route(); }, 3000);
  };
}

/* ---- numbers ---- */

function money(micros) {
  if (micros === 0 || micros >= 10000) return "$" + (micros / 1e6).toFixed(2);
  return "$" + (micros / 1e6).toFixed(6).replace(/0+$/, "");
}

const grouped = (number) => number.toLocaleString("en-US");

// An amount of dollars or of tokens.
const amount = (unit, value) => unit === "tokens" ? `${grouped(value)} ${value === 1 ? "token" : "tokens"}` : money(value);

// What a run cost and may cost.
function cost(run) {
  const told = [];
  const budget = run.budget;
  if (budget?.unit === "usd_micros") told.push(`${money(run.cost_micros ?? 0)} of ${money(budget.value)}`);
  else if (run.cost_micros !== null) told.push(money(run.cost_micros));
  if (budget?.unit === "tokens") told.push(`${grouped(run.tokens ?? 0)} of ${amount("tokens", budget.value)}`);
  else if (run.tokens) told.push(amount("tokens", run.tokens));
  return told.join(", ");
}

function duration(milliseconds) {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 60) return seconds.toFixed(1) + " s";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

function age(at) {
  const minutes = Math.max(0, Math.floor((Date.now() - at) / 60000));
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 2880) return `${Math.floor(minutes / 60)} h ago`;
  return `${Math.floor(minutes / 1440)} d ago`;
}

const changes = (files, plus, minus) => files === 0 ? "nothing was changed" : `${files} ${files === 1 ? "file" : "files"}, +${plus} −${minus}`;

/* ---- the list ---- */

function row(run) {
  const item = element("li");
  item.dataset.run = run.id;
  const link = element("a");
  link.href = "#" + encodeURIComponent(run.id);
  const status = element("span", "status", run.status);
  if (/^[a-z]+$/.test(run.status)) status.classList.add(run.status);
  const when = element("span", "when", age(run.created_at));
  when.title = new Date(run.created_at).toLocaleString();
  const folder = plain(run.checkout).split(/[\\/]/).filter(Boolean).pop() ?? "";
  const facts = [run.id, folder];
  if (run.files_changed !== null) facts.push(changes(run.files_changed, run.insertions ?? 0, run.deletions ?? 0));
  if (run.cost_micros !== null || run.budget) facts.push(cost(run));
  link.append(status, element("span", "title", plain(run.title)), when, element("span", "where", facts.join(" · ")));
  item.append(link);
  return item;
}

async function loadList(mine) {
  const { runs } = await ask(`/api/runs?limit=${LIST_LIMIT}`);
  if (mine !== view) return;
  const focused = document.activeElement?.closest?.("#rows li")?.dataset.run;
  byId("rows").replaceChildren(...runs.map(row));
  if (focused) byId("rows").querySelector(`[data-run="${CSS.escape(focused)}"] a`)?.focus();
  byId("empty").hidden = runs.length > 0;
  byId("more").hidden = runs.length < LIST_LIMIT;
  show("list");
}

async function openList(mine) {
  document.title = "Runs – Worca";
  // The number first: what happens while the list is read comes again by the stream.
  const { last_event, kernel } = await ask("/api/status");
  await loadList(mine);
  if (mine !== view) return;
  drawKernel(kernel);
  let waiting = null;
  follow(`/api/events?after=${last_event}`, mine, (stored) => {
    if (!["status", "committed", "usage"].includes(stored.event.kind) || waiting) return;
    waiting = setTimeout(() => {
      waiting = null;
      if (mine === view) loadList(mine).catch((error) => { if (mine === view) fail(error); });
    }, 200);
  });
}

// What the machine cannot hold is said before a run is started, not after.
function drawKernel(kernel) {
  const place = byId("kernel");
  const loses = kernel?.default_set_loses ?? [];
  place.hidden = !kernel;
  if (!kernel) return;
  const holds = kernel.abi === 0 ? "This machine's kernel has no Landlock" : `This machine's kernel: Landlock ABI ${kernel.abi}`;
  place.textContent = loses.length === 0
    ? `${holds}. It holds all that the guardrail set ${plain(kernel.default_set)} asks of it.`
    : `${holds}. Under the guardrail set ${plain(kernel.default_set)} it does not hold ${plain(loses.join(", nor "))}.`;
}

/* ---- one run ---- */

function fact(name, value) {
  if (value === null || value === undefined || value === "") return [];
  return [element("dt", "", name), element("dd", "", plain(String(value)))];
}

// What held the agent at its last start.
function drawReceipt(policy) {
  const receipt = policy?.receipt;
  byId("receipt-box").hidden = !receipt;
  if (!receipt) return;
  const tried = [...receipt.tried];
  if (receipt.hook !== null && receipt.hook !== undefined) {
    tried.push({ what: "tool call", target: "a forbidden one, through the hook", outcome: receipt.hook ? "held" : "open" });
  }
  const count = (outcome) => tried.filter((one) => one.outcome === outcome).length;
  const absent = count("absent") ? ` (${count("absent")} more not there to be tried)` : "";
  byId("receipt-summary").textContent =
    `What was tried before the agent started: ${count("held")} of ${tried.length - count("absent")} held${absent}`;
  byId("receipt-rows").replaceChildren(...tried.map((one) => {
    const row = element("tr");
    const outcome = element("td", "outcome", plain(one.outcome));
    if (["held", "open", "absent"].includes(one.outcome)) outcome.classList.add(one.outcome);
    row.append(element("td", "", plain(one.what)), element("td", "target", plain(one.target)), outcome);
    return row;
  }));
  const lacks = receipt.kernel_lacks ?? [];
  byId("receipt-lacks").hidden = lacks.length === 0;
  byId("receipt-lacks").textContent = `The kernel (Landlock ABI ${receipt.kernel_abi}) did not hold ${plain(lacks.join(", nor "))}.`;
}

// A budget of which four fifths or more are spent, in words.
function warning(budget) {
  const percent = Math.floor((budget.spent * 100) / Math.max(1, budget.limit));
  return `${budget.cap}: ${percent} % is spent, ${amount(budget.unit, budget.spent)} of ${amount(budget.unit, budget.limit)}`;
}

// What its agents used, per slot and model, and the budgets that are nearly spent.
function drawUsed(run) {
  byId("used-box").hidden = run.usage.length === 0 && run.warnings.length === 0;
  byId("used").hidden = run.usage.length === 0;
  byId("used-rows").replaceChildren(...run.usage.map((one) => {
    const row = element("tr");
    const cells = [one.calls, one.input, one.cache_write, one.cache_read, one.output].map(grouped);
    row.append(
      element("td", "target", plain(one.model)), element("td", "", plain(one.slot)),
      ...cells.map((cell) => element("td", "number", cell)),
      element("td", "number", money(one.cost_micros) + (one.unpriced > 0 ? " + ?" : "")),
    );
    return row;
  }));
  const sum = (of) => run.usage.reduce((total, one) => total + of(one), 0);
  const calls = (count) => count === 1 ? "1 call" : `${grouped(count)} calls`;
  const unsure = [];
  if (sum((one) => one.failed) > 0) unsure.push(`${calls(sum((one) => one.failed))} failed or broke off.`);
  if (sum((one) => one.estimated) > 0) unsure.push(`The output of ${calls(sum((one) => one.estimated))} is estimated.`);
  if (sum((one) => one.unpriced) > 0) unsure.push(`The price of ${calls(sum((one) => one.unpriced))} is not known and not in the cost.`);
  byId("used-unsure").hidden = unsure.length === 0;
  byId("used-unsure").textContent = unsure.join(" ");
  byId("warnings").hidden = run.warnings.length === 0;
  byId("warnings").replaceChildren(...run.warnings.map((budget) => element("li", "", plain(warning(budget)))));
}

function drawRun(run) {
  document.title = `${plain(run.title)} – Worca`;
  byId("run-title").textContent = plain(run.title);
  const status = element("span", "status", run.status);
  if (/^[a-z]+$/.test(run.status)) status.classList.add(run.status);
  byId("run-state").replaceChildren(status, run.reason ? ` ${plain(run.reason)}` : "");
  byId("facts").replaceChildren(
    ...fact("Run", run.id),
    ...fact("Branch", run.branch),
    ...fact("Checkout", run.checkout),
    ...fact("Commit", run.head_commit === run.base_commit ? null : run.head_commit?.slice(0, 10)),
    ...(run.files_changed === null ? [] : fact("Changes", changes(run.files_changed, run.insertions ?? 0, run.deletions ?? 0))),
    ...fact("Model", run.model),
    ...fact("Guardrail set", run.guardrails),
    ...fact("Policy", run.policy?.digest?.slice(0, 12)),
    ...fact("Cost", cost(run)),
    ...fact("Paid by", run.payer === "local" ? null : run.payer),
    ...fact("May use", run.only_models.length === 0 ? null : `${run.only_models.join(", ")} alone`),
    ...fact("Started", new Date(run.created_at).toLocaleString()),
    ...(run.ended_at === null ? [] : fact("Took", duration(run.ended_at - run.created_at))),
    ...fact("Backup", run.backup),
    ...(run.backup ? fact("To read it", `git diff ${run.base_commit.slice(0, 10)}..${run.backup}`) : []),
  );
  byId("prompt").textContent = plain(run.prompt);
  drawUsed(run);
  drawReceipt(run.policy);
  byId("go-on").hidden = run.status !== "parked";
  byId("go-on-command").textContent = `worca resume ${run.id}`;
  byId("end-command").textContent = `worca stop ${run.id}`;
}

// What was used of one model, on one line.
function used(row) {
  const cached = row.cache_read > 0 ? ` (${grouped(row.cache_read)} of them from the cache)` : "";
  const calls = row.calls === 1 ? "call" : "calls";
  return `${row.model} of ${row.slot}: ${grouped(row.calls)} ${calls}, ${grouped(row.input + row.cache_write + row.cache_read)} tokens in${cached}, `
    + `${grouped(row.output)} out, ${money(row.cost_micros)}${row.unpriced > 0 ? " and calls whose price is not known" : ""}`;
}

// An event as [word, text, looks].
function words(event) {
  switch (event.kind) {
    case "status": return ["status", event.reason ? `${event.status}: ${event.reason}` : event.status, event.status === "failed" ? "bad" : ""];
    case "worktree": return ["branch", `${event.branch} from ${event.base.slice(0, 10)}`, ""];
    case "agent_started": return ["agent", event.program, ""];
    case "agent_ready": return ["model", event.model, ""];
    case "agent_text": return ["says", event.text, ""];
    case "tool_use": return ["tool", `${event.tool} ${event.summary}`, "code"];
    case "tool_result": return [event.is_error ? "failed" : "result", event.text, event.is_error ? "code bad" : "code"];
    case "agent_retry": return ["retry", event.text, ""];
    case "agent_ended": return ["ended", event.stderr ? `${event.exit}\n${event.stderr}` : event.exit, ""]; // whether that was bad, the status says
    case "committed": return ["commit", `${event.commit.slice(0, 10)} ${changes(event.files, event.insertions, event.deletions)}`, ""];
    case "note": return ["note", event.text, ""];
    case "usage": return ["used", event.rows.map(used).join("\n"), ""];
    case "budget_warning": return ["budget", warning(event.budget), ""];
    default: return [event.kind, "", ""];
  }
}

function line(stored) {
  const [word, text, looks] = words(stored.event);
  const item = element("li", looks.includes("bad") ? "bad" : "");
  const at = new Date(stored.at);
  const time = element("time", "", at.toLocaleTimeString([], { hour12: false }));
  time.dateTime = at.toISOString();
  item.append(time, element("span", "word", word), element("span", looks.includes("code") ? "text code" : "text", plain(text)));
  return item;
}

let following = true;

function setFollowing(on) {
  following = on;
  const button = byId("follow");
  button.setAttribute("aria-pressed", String(on));
  button.textContent = on ? "Following: new lines scroll into view" : "Follow new lines";
}

async function openRun(id, mine) {
  const run = await ask(`/api/runs/${encodeURIComponent(id)}`);
  if (mine !== view) return;
  const events = byId("events");
  events.replaceChildren();
  byId("dropped").hidden = true;
  byId("events-empty").hidden = false;
  drawRun(run);
  show("run");
  byId("run-title").focus({ preventScroll: true });
  const live = !ENDED.includes(run.status);
  byId("follow").hidden = !live;
  setFollowing(live);

  let dropped = 0;
  let queue = [];
  let drawing = false;
  // Lines are put in once per frame, and of a burst only those that can be seen.
  const draw = () => {
    drawing = false;
    if (mine !== view) return;
    const over = Math.max(0, queue.length - LINES);
    dropped += over;
    events.append(...queue.slice(over).map(line));
    queue = [];
    while (events.childElementCount > LINES) {
      events.firstElementChild.remove();
      dropped += 1;
    }
    byId("events-empty").hidden = events.childElementCount > 0;
    if (dropped > 0) {
      byId("dropped").hidden = false;
      byId("dropped").textContent = `${dropped} earlier lines are not shown here; worca show ${id} --events prints all.`;
    }
    if (following) window.scrollTo(0, document.documentElement.scrollHeight);
  };
  const again = () => ask(`/api/runs/${encodeURIComponent(id)}`).then((now) => {
    if (mine === view) drawRun(now);
  });
  follow(`/api/runs/${encodeURIComponent(id)}/events`, mine, (stored) => {
    queue.push(stored);
    if (queue.length > 2 * LINES) {
      dropped += queue.length - LINES;
      queue = queue.slice(-LINES);
    }
    if (!drawing) {
      drawing = true;
      // A hidden tab has no frames.
      if (document.hidden) setTimeout(draw, 500); else requestAnimationFrame(draw);
    }
    if (["status", "committed", "agent_started", "usage", "budget_warning"].includes(stored.event.kind) && live) again().catch(() => {});
  }, (status) => {
    say(status === "parked" ? "This run waits" : "This run has ended");
    byId("follow").hidden = true;
    again().catch(() => {});
  });
}

/* ---- which view ---- */

function route() {
  view += 1;
  const mine = view;
  close();
  say("");
  const id = decodeURIComponent(location.hash.slice(1));
  // Asked first: a refusal, which is no fault here, would stand in the browser's console as one.
  const opening = ask("/api/session").then(({ signed_in }) => {
    if (!signed_in) throw new SignedOut();
    if (mine !== view) return undefined;
    return /^r[0-9a-z]{10}$/.test(id) ? openRun(id, mine) : openList(mine);
  });
  opening.catch((error) => { if (mine === view) fail(error); });
}

window.addEventListener("hashchange", () => {
  show("loading");
  window.scrollTo(0, 0);
  route();
});
// The hash names the run, so the skip link moves the focus by itself.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
byId("again").addEventListener("click", () => { show("loading"); route(); });
byId("follow").addEventListener("click", () => setFollowing(!following));
// Who scrolls up reads: new lines must not pull the page away.
window.addEventListener("wheel", (event) => { if (event.deltaY < 0) setFollowing(false); }, { passive: true });
window.addEventListener("keydown", (event) => {
  if (["PageUp", "Home", "ArrowUp"].includes(event.key)) setFollowing(false);
});
// Signed in by a link in another tab, or back from sleep: look again.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && (!byId("signed-out").hidden || !byId("failed").hidden)) route();
});
route();
