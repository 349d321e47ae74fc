//! Names of hosts in a statically linked binary: from /etc/hosts and DNS, and nothing is loaded for it.
//!
//! glibc finds names through modules that /etc/nsswitch.conf lists. A static binary would load them, and
//! with them the host's own glibc, which works only where that is of the very release we were built with.
//! The modules `files` and `dns` are part of glibc itself (since 2.34), so they are all that we use.

use std::ffi::{c_char, c_int};

unsafe extern "C" {
    /// `nss.h`: what to use for `database` instead of what /etc/nsswitch.conf says. 0, or -1 on error.
    fn __nss_configure_lookup(database: *const c_char, service_line: *const c_char) -> c_int;
}

/// To be called before the first name is looked up, and before there are threads.
pub fn load_nothing() {
    // SAFETY: both are texts that end in a zero byte and live for ever; no other thread runs yet. It
    // fails only for lack of memory or for a database or line it does not know, and then changes nothing.
    unsafe {
        __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr());
    }
}
