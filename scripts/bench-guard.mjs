// The same check as a Node script, as a peer of the hook in `scripts/bench guard`: reads the call and the policy, splits the
// line and holds each command against the rules. It knows far less than the hook does; it is here for what starting costs.
import fs from 'node:fs';

const call = JSON.parse(fs.readFileSync(0, 'utf8'));
const policy = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const rules = policy.rules.filter((rule) => rule.kind === 'commands').map((rule) => rule.pattern.split(' '));
const deny = (rule) =>
  console.log(JSON.stringify({
    hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: `denied by ${rule}` },
  }));
if (call.tool_name === 'Bash') {
  for (const part of call.tool_input.command.split(/&&|\|\||[;|\n&]/)) {
    const words = part.trim().split(/\s+/).map((word) => word.replace(/["'\\]/g, ''));
    const rule = rules.find((rule) => rule.every((word, at) => words[at] === word));
    if (rule || words[0] === 'pkill' || words[0] === 'killall') {
      deny(rule?.join(' ') ?? words[0]);
      break;
    }
  }
}
