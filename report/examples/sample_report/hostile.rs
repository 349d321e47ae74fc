//! What a server or a file system may call its things.

/// Names that try to run, to hide or to break out.
pub(crate) const HOSTILE_NAMES: [&str; 4] = [
    "<img src=x onerror=\"window.hacked=1\">",
    "</script><script>window.hacked=2</script>",
    "abc\u{202e}fdp.tw\"'&\n\u{7}\u{0}",
    "</title></style><svg onload='window.hacked=3'>",
];
