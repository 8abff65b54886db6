//! Bodies on their way through, frame by frame: limited, watched for silence, looked at and never gathered, but for
//! the provider's errors, which are short.

mod blot;
mod download;
mod failure;
mod silence;
mod upload;

pub(super) use download::{Download, From, Note};
pub(super) use failure::gather;
pub(super) use upload::{Fault, Slip, Stop, Upload};
