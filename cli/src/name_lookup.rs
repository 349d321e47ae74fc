//! Resolves host names in a statically linked binary: from /etc/hosts and DNS, without loading anything for it.
//!
//! glibc finds names through modules listed in /etc/nsswitch.conf. A static binary would load them, and with
//! them the host's own glibc, which works only if that is the very release we were built with. The modules
//! `files` and `dns` are part of glibc itself (since 2.34), so they are all that we use.

use std::ffi::{c_char, c_int};

unsafe extern "C" {
    /// `nss.h`: sets what to use for `database` instead of what /etc/nsswitch.conf says. Returns 0, or -1 on
    /// error.
    fn __nss_configure_lookup(database: *const c_char, service_line: *const c_char) -> c_int;
}

/// Restricts name lookup to built-in modules. Call this before the first lookup and before there are threads.
pub fn load_nothing() {
    // SAFETY: both strings end in a zero byte and live for ever; no other thread runs yet. The call fails only
    // for lack of memory or for an unknown database or line, and then changes nothing.
    unsafe {
        __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr());
    }
}
