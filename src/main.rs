//! The `worca` program: parse, dispatch, exit code. Nothing else.

fn main() {}
