//! `healthcheck` and `restart` of a service.

use super::super::model::{HealthTest, Healthcheck, Restart};
use super::super::place::{LoadError, shown};
use super::super::yaml::Value;
use super::fields::Field;

pub(super) fn check(field: &Field<'_>) -> Result<Healthcheck, LoadError> {
    let mut fields = field.fields()?;
    let mut check = Healthcheck::default();
    if let Some(test) = fields.take("test") {
        check.test = read_test(&test)?;
    }
    check.interval = fields.take("interval").map(|f| f.duration()).transpose()?;
    check.timeout = fields.take("timeout").map(|f| f.duration()).transpose()?;
    check.start_period = fields.take("start_period").map(|f| f.duration()).transpose()?;
    if let Some(retries) = fields.take("retries") {
        let number =
            u32::try_from(retries.whole()?).map_err(|_| retries.error("this takes a number from 0"))?;
        check.retries = Some(number);
    }
    if let Some(disable) = fields.take("disable")
        && disable.boolean()?
    {
        if matches!(check.test, HealthTest::Command(_) | HealthTest::Shell(_)) {
            return Err(disable.error("a check that is disabled has no `test`"));
        }
        check.test = HealthTest::Disabled;
    }
    fields.finish()?;
    Ok(check)
}

fn read_test(field: &Field<'_>) -> Result<HealthTest, LoadError> {
    if matches!(field.node().value, Value::Scalar(_)) {
        return Ok(HealthTest::Shell(field.some_text()?));
    }
    let words = field.texts()?;
    let hint = "a list begins with `CMD`, `CMD-SHELL` or `NONE`";
    match words.split_first() {
        None => Ok(HealthTest::FromImage),
        Some((first, [])) if first == "NONE" => Ok(HealthTest::Disabled),
        Some((first, rest)) if first == "CMD" && !rest.is_empty() => Ok(HealthTest::Command(rest.to_vec())),
        Some((first, [line])) if first == "CMD-SHELL" => Ok(HealthTest::Shell(line.clone())),
        Some((first, _)) => {
            Err(field.error(format!("`{}` does not begin a test here", shown(first))).advise(hint))
        }
    }
}

pub(super) fn restart(field: &Field<'_>) -> Result<Restart, LoadError> {
    if let Value::Scalar(scalar) = &field.node().value
        && scalar.kind == super::super::yaml::Kind::Bool(false)
    {
        return Err(field.error("`false` is no restart policy").advise("write \"no\" with the quotes"));
    }
    let text = field.text()?;
    match text.split_once(':').map_or((text.as_str(), None), |(word, count)| (word, Some(count))) {
        ("no", None) => Ok(Restart::No),
        ("always", None) => Ok(Restart::Always),
        ("unless-stopped", None) => Ok(Restart::UnlessStopped),
        ("on-failure", None) => Ok(Restart::OnFailure(None)),
        ("on-failure", Some(count)) => count
            .parse()
            .map(|count| Restart::OnFailure(Some(count)))
            .map_err(|_| field.error("the count is no number")),
        _ => Err(field
            .error(format!("`{}` is no restart policy", shown(&text)))
            .advise("use \"no\", `always`, `on-failure` or `unless-stopped`")),
    }
}
