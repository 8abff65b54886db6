use super::*;

/// What Claude Code 2.1 draws, shortened: words placed by column, the address inside a hyperlink.
const DRAWN: &str = "\u{1b}[?25l\u{1b}[38;5;174mWelcome\u{1b}[9Gto\u{1b}[12GClaude\u{1b}[19GCode\r\r\n\
    \u{1b}[2GBrowser\u{1b}[10Gdidn't\u{1b}[17Gopen?\r\r\n\r\r\n\
    \u{1b}]8;id=1;https://claude.ai/oauth/authorize?code=true&client_id=abc\u{7}\u{1b}[38;5;246mhttps://claude.ai/oauth/authorize?code=true&client_id=abc\u{1b}[39m\u{1b}]8;;\u{7}\r\r\n\
    \r\r\n\u{1b}[2GPaste\u{1b}[8Gcode\u{1b}[13Ghere\u{1b}[18Gif\u{1b}[21Gprompted\r\r\n";

fn screen(drawn: &str) -> Screen {
    let mut screen = Screen::new();
    screen.draw(drawn.as_bytes());
    screen
}

#[test]
fn c107_the_address_is_read_whole_once_the_code_is_asked_for() {
    assert_eq!(
        screen(DRAWN).address().as_deref(),
        Some("https://claude.ai/oauth/authorize?code=true&client_id=abc")
    );
    let (before, _) = DRAWN.split_once("\u{1b}[2GPaste").unwrap();
    assert_eq!(screen(before).address(), None);
    let long = format!("https://claude.ai/oauth/authorize?{}", "x".repeat(400));
    assert_eq!(screen(&format!("{long}\r\n Paste code here if prompted >")).address(), Some(long));
}

#[test]
fn a_token_is_taken_whole_also_when_it_is_drawn_over_other_text() {
    let token = format!("{TOKEN}{}", "aB3_-".repeat(19));
    let mut screen = screen(DRAWN);
    // The set-up leaves out characters that stand in the right place already.
    screen.draw(b"\x1b[2J\x1b[Hsk-ant-\r");
    assert!(screen.token().is_none());
    screen.draw(format!("\x1b[8G{}", token.strip_prefix("sk-ant-").unwrap()).as_bytes());
    assert_eq!(screen.token().unwrap().expose(), token);
    assert!(!screen.words().contains("oat01"), "{}", screen.words());
}

#[test]
fn half_a_token_is_none() {
    assert!(screen("sk-ant-oat01-abc").token().is_none());
}

#[test]
fn a_refusal_is_told_in_its_own_words() {
    let drawn =
        "\u{1b}[38;5;211m\u{2718}\u{1b}[4GOAuth error: Invalid code. Try again.\r\n\r\n Press Enter to retry";
    assert_eq!(screen(drawn).refusal().as_deref(), Some("OAuth error: Invalid code. Try again."));
    assert_eq!(screen(DRAWN).refusal(), None);
}

#[test]
fn a_complaint_never_repeats_a_key() {
    assert_eq!(words_of(b"error: bad\n  because: short\n\nhint: x\n"), "bad because: short");
    assert_eq!(words_of(b"error: bad key\n sk-ant-api03-abc here\x1b[0m"), "bad key (a key) here[0m");
}
