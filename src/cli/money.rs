//! What was used and what may be spent, in words.

use crate::amount::Amount;
use crate::cli::text::{dollars, grouped, one_line};
use crate::events::{ModelUsage, SpentBudget};
use crate::server::wire::RunLine;

/// What was used of one model, on one line.
pub fn used(row: &ModelUsage) -> String {
    let calls = if row.calls == 1 { "call" } else { "calls" };
    let cached = match row.cache_read {
        0 => String::new(),
        cached => format!(" ({} of them from the cache)", grouped(cached)),
    };
    let input = [row.input, row.cache_write, row.cache_read].into_iter().fold(0, u64::saturating_add);
    let mut text = format!(
        "{} of {}: {} {calls}, {} tokens in{cached}, {} out, {}",
        one_line(&row.model),
        one_line(&row.slot),
        grouped(row.calls),
        grouped(input),
        grouped(row.output),
        dollars(row.cost_micros)
    );
    for reservation in reservations(row.calls, row.failed, row.unpriced, row.estimated) {
        text = format!("{text}; {reservation}");
    }
    text
}

/// What must be known of these numbers beside them.
pub fn reservations(calls: u64, failed: u64, unpriced: u64, estimated: u64) -> Vec<String> {
    let share = |count: u64| match (count, calls) {
        (1, 1) => "it".to_owned(),
        (count, calls) if count == calls => "all of them".to_owned(),
        (count, _) => format!("{} of the calls", grouped(count)),
    };
    let mut told = Vec::new();
    if failed > 0 {
        told.push(format!("{} failed or broke off", share(failed)));
    }
    if estimated > 0 {
        told.push(format!("the output of {} is estimated", share(estimated)));
    }
    if unpriced > 0 {
        told.push(format!("the price of {} is not known and not in the cost", share(unpriced)));
    }
    told
}

/// What a run cost and may cost: `$0.12 of $5.00`, `$0.00, 12,000 tokens`. `None` while neither is known.
pub fn cost(run: &RunLine) -> Option<String> {
    let budget = run.budget.map(Amount::from);
    let tokens = run.tokens.map(Amount::Tokens);
    let money = run.cost_micros.map(Amount::UsdMicros);
    let of = |spent: Option<Amount>, limit: Amount| {
        let spent = spent.unwrap_or_else(|| Amount::of(limit.unit(), 0));
        let spent = match spent {
            Amount::Tokens(tokens) => grouped(tokens),
            money @ Amount::UsdMicros(_) => money.to_string(),
        };
        format!("{spent} of {limit}")
    };
    let (money, tokens) = match budget {
        Some(limit @ Amount::UsdMicros(_)) => {
            (Some(of(money, limit)), tokens.map(|tokens| tokens.to_string()))
        }
        Some(limit @ Amount::Tokens(_)) => (money.map(|money| money.to_string()), Some(of(tokens, limit))),
        None => (money.map(|money| money.to_string()), tokens.map(|tokens| tokens.to_string())),
    };
    let told: Vec<String> = money.into_iter().chain(tokens).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// A budget that is nearly spent.
pub fn warning(budget: &SpentBudget) -> String {
    one_line(&budget.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_is_told_with_what_is_not_sure_of_it() {
        let row = ModelUsage {
            slot: "anthropic".into(),
            model: "claude-\u{1b}[31mopus".into(),
            calls: 3,
            failed: 1,
            input: 100,
            output: 2_000,
            cache_write: 900,
            cache_read: 9_000,
            cost_micros: 120_000,
            unpriced: 3,
            estimated: 1,
        };
        assert_eq!(
            used(&row),
            "claude-opus of anthropic: 3 calls, 10,000 tokens in (9,000 of them from the cache), 2,000 out, $0.12; \
             1 of the calls failed or broke off; the output of 1 of the calls is estimated; the price of all of \
             them is not known and not in the cost"
        );
        let one = ModelUsage { calls: 1, cache_read: 0, failed: 0, estimated: 1, unpriced: 1, ..row };
        assert_eq!(
            used(&one),
            "claude-opus of anthropic: 1 call, 1,000 tokens in, 2,000 out, $0.12; the output of it is estimated; the \
             price of it is not known and not in the cost"
        );
    }

    #[test]
    fn a_cost_is_told_with_what_may_be_spent() {
        let line = |more: serde_json::Value| -> RunLine {
            let mut line = serde_json::json!({
                "id": "r0123456789", "status": "done", "reason": null, "title": "t", "checkout": "/p",
                "branch": "b", "created_at": 0, "ended_at": null, "head_commit": null, "files_changed": null,
                "insertions": null, "deletions": null, "cost_micros": null,
            });
            line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(line).unwrap()
        };
        let money = serde_json::json!({ "value": 5_000_000, "unit": "usd_micros" });
        let tokens = serde_json::json!({ "value": 200_000, "unit": "tokens" });
        for (more, wanted) in [
            (serde_json::json!({}), None),
            (serde_json::json!({ "cost_micros": 120_000 }), Some("$0.12")),
            (serde_json::json!({ "budget": money }), Some("$0.00 of $5.00")),
            (
                serde_json::json!({ "budget": money, "cost_micros": 120_000, "tokens": 1234 }),
                Some("$0.12 of $5.00, 1,234 tokens"),
            ),
            (
                serde_json::json!({ "budget": tokens, "cost_micros": 0, "tokens": 1234 }),
                Some("$0.00, 1,234 of 200,000 tokens"),
            ),
        ] {
            assert_eq!(cost(&line(more)).as_deref(), wanted);
        }
    }
}
