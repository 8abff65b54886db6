use super::super::Shell;
use super::super::windows::lines;

fn verdict(line: &str, strict: bool) -> Option<crate::guardrails::Denial> {
    lines::verdict(Shell::Cmd, line, strict)
}

fn denied(lines: &[&str], rule: &str) {
    lines::denied(Shell::Cmd, lines, rule);
}

fn allowed(lines: &[&str]) {
    lines::allowed(Shell::Cmd, lines, true);
}

#[test]
fn c019_taskkill_by_image_name_is_denied_in_every_spelling() {
    denied(
        &[
            "taskkill /F /IM node.exe",
            "taskkill //F //IM node.exe",
            "TASKKILL /im NODE.EXE /t",
            "taskkill.exe /IM node.exe",
            "\"taskkill\" /IM node.exe",
            "C:\\Windows\\System32\\taskkill.exe /IM node.exe",
            "%SystemRoot%\\System32\\taskkill.exe /IM node.exe",
            "\"%SystemRoot%\\System32\\taskkill\" /IM node.exe",
            "taskkill -im node.exe",
            "taskkill /im:node.exe",
            "taskkill/im node.exe",
            "taskkill /FI \"IMAGENAME eq node.exe\"",
            "t^askk^ill /IM node.exe",
            "taskkill /^I^M node.exe",
            "task\"kill\" /IM node.exe",
            "taskk%nothing%ill /IM node.exe",
            "taskkill /%x%IM node.exe\ntaskkill /im x",
            "set x=taskkill\n%x% /IM node.exe",
            "set a=task& set b=kill& call %a%%b% /IM node.exe",
            "set \"x=q\"& set x=z& %x% /IM node.exe",
            "echo hi & taskkill /IM node.exe",
            "echo hi && taskkill /IM node.exe",
            "echo hi || taskkill /IM node.exe",
            "echo hi | taskkill /IM node.exe",
            "echo hi\ntaskkill /IM node.exe",
            "echo ^\n hi & taskkill /IM node.exe",
            "(taskkill /IM node.exe)",
            "((echo x) & (taskkill /IM node.exe))",
            "if exist x taskkill /IM node.exe",
            "if not exist x (echo y) else taskkill /IM node.exe",
            "if not exist x (echo y) else (taskkill /IM node.exe)",
            "if \"%x%\"==\"y\" taskkill /IM node.exe",
            "if /i %x% == y taskkill /IM node.exe",
            "if %x% EQU 3 (taskkill /IM node.exe)",
            "if defined x (echo y\ntaskkill /IM node.exe\n)",
            "for %i in (node chrome) do taskkill /IM %i.exe",
            "for /f %i in ('taskkill /IM node.exe') do echo %i",
            "for /f \"tokens=2\" %i in ('tasklist ^| taskkill /IM node.exe') do echo %i",
            "for %c in (taskkill) do %c /IM node.exe",
            "start taskkill /IM node.exe",
            "start \"\" /b taskkill /IM node.exe",
            "start /wait /d C:\\ taskkill /IM node.exe",
            "call taskkill /IM node.exe",
            "@taskkill /IM node.exe",
            "cmd /c taskkill /IM node.exe",
            "cmd /c \"taskkill /IM node.exe\"",
            "cmd /c \"echo x & taskkill /IM node.exe\"",
            "cmd /s /c \"\"taskkill\" /IM node.exe\"",
            "%COMSPEC% /c taskkill /IM node.exe",
            "cmd/c taskkill /IM node.exe",
            "cmd /c cmd /c cmd /c taskkill /IM node.exe",
            "powershell -c \"taskkill /IM node.exe\"",
            "powershell -Command Stop-Process -Name node",
            "powershell Stop-Process -n node",
            "pwsh -c \"gps node ^| spps\"\npwsh -c \"gps node | spps\"",
            "echo taskkill /IM node.exe | cmd",
            "wmic process where name=\"node.exe\" delete",
            "wmic process where \"name='node.exe'\" call terminate",
            "WMIC PROCESS WHERE Name='node.exe' CALL Terminate",
            "wmic process call create \"taskkill /im node.exe\"",
            "tskill node",
            "> out.txt taskkill /IM node.exe",
            "2>nul taskkill /IM node.exe",
            "schtasks /create /tn x /tr \"taskkill /im node.exe\" /sc once /st 00:00",
            "forfiles /c \"cmd /c taskkill /im node.exe\"",
            "runas /user:x \"taskkill /im node.exe\"",
            "rem\n taskkill /IM node.exe",
            "rem & taskkill /IM node.exe",
            ":label\ntaskkill /IM node.exe",
            "echo \"x\" & taskkill /IM node.exe",
        ],
        "host.kill-by-name",
    );
    let denial = verdict("taskkill /F /IM node.exe", false).unwrap();
    assert!(denial.reason.contains("taskkill /PID"), "{}", denial.reason);
}

#[test]
fn a_kill_of_what_a_loop_finds_is_denied_and_so_is_the_host() {
    denied(
        &[
            "for /f \"tokens=5\" %a in ('netstat -aon ^| findstr :3000') do taskkill /F /PID %a",
            "for /f \"tokens=2\" %%a in ('tasklist') do taskkill /PID %%a",
            "taskkill /PID %pid%",
            "taskkill /PID !pid!",
            "set /p p=<.pid & taskkill /PID %p%",
            "taskkill %args%",
        ],
        "host.kill-target",
    );
    denied(
        &[
            "taskkill /PID 31337",
            "taskkill /F /PID 4242 /PID 31337",
            "tskill 31337",
            "set p=31337& call taskkill /PID %p%",
        ],
        "host.host-id",
    );
}

#[test]
fn ordinary_work_is_allowed_also_where_the_undecided_is_not() {
    allowed(&[
        "taskkill /PID 4242",
        "taskkill /F /T /PID 4242",
        "taskkill //PID 4242 //F",
        "taskkill /?",
        "tasklist",
        "tasklist /FI \"IMAGENAME eq node.exe\"",
        "tasklist | findstr node",
        "wmic process get name,processid",
        "echo taskkill /IM node.exe",
        "echo taskkill /IM node.exe>> notes.txt",
        "echo \"a & taskkill /IM node.exe\"",
        "echo a ^& taskkill /IM node.exe",
        "rem taskkill /IM node.exe",
        ":: taskkill /IM node.exe",
        "git commit -m \"say why taskkill /IM is refused\"",
        "git log --grep=\"taskkill\"",
        "findstr /s /c:\"taskkill /IM\" *.md",
        "npm ci && npm test",
        "cd src && dir /b",
        "if exist dist rmdir /s /q dist",
        "if not exist build (mkdir build) else (echo there)",
        "if \"%CI%\"==\"true\" (echo ci) else echo local",
        "for %f in (*.txt) do type %f",
        "for /r %f in (*.js) do @echo %f",
        "for /l %i in (1,1,5) do echo %i",
        "for /f \"delims=\" %i in ('git rev-parse HEAD') do set SHA=%i",
        "set NODE_ENV=test&& npm test",
        "dotnet build -c Release > build.log 2>&1",
        "type package.json | findstr version",
        "start \"\" /b npm run dev",
        "cmd /c \"npm run build && npm test\"",
        "call build.bat release",
        "(echo a & echo b) > out.txt",
        "powershell -Command \"Get-Process node\"",
        "python -c \"print(1)\"",
        "where node",
        "echo :)",
        "echo (a) b",
        "echo 100% done",
        "",
    ]);
}

#[test]
fn what_cannot_be_known_is_denied_where_the_set_says_so() {
    for line in ["%tool% build", "cmd < script.txt & %x% y", "%x:~1,2% y"] {
        assert_eq!(
            verdict(line, true).map(|denial| denial.rule.to_string()).as_deref(),
            Some("shell.undecided"),
            "{line}"
        );
        assert_eq!(verdict(line, false), None, "{line}");
    }
    denied(
        &["type x | cmd", "echo x %y% | cmd", "curl x | powershell -", "type x.sh | bash"],
        "shell.undecided",
    );
    for line in ["(echo x", "for %i in (a b", "for x do y", "if"] {
        assert_eq!(verdict(line, false).unwrap().rule.to_string(), "shell.unreadable", "{line}");
    }
    assert_eq!(verdict(&"(".repeat(30_000), false).unwrap().rule.to_string(), "shell.too-deep");
}
