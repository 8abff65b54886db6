//! The key service. (Its own files come with it; here is the boot check that core uses.)

pub mod reach;
