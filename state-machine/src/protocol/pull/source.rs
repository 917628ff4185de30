//! The deeds of whoever fetches a file: what is done with its bytes. When, and what is recorded before and after it, is in
//! [`fetch`](super::fetch).

use super::Site;
use crate::disk::Disk;
use crate::pull::part::Part;
use crate::pull::word::Cause;

/// Who fetches one file.
///
/// Every deed tracks its caller, as every effect of a [`Disk`] does.
pub trait Source {
    /// The disk that the file is on.
    type Disk: Disk;

    /// The disk.
    fn disk(&mut self) -> &mut Self::Disk;

    /// How long the open part is, in bytes.
    #[track_caller]
    fn length(&mut self, part: &HandleOf<Self>) -> Result<u64, FaultOf<Self>>;

    /// Make the open part empty.
    #[track_caller]
    fn empty(&mut self, part: &HandleOf<Self>) -> Result<(), FaultOf<Self>>;

    /// Ask for what is missing, and write it to where it belongs, until nothing is missing or there is a reason to stop. The
    /// record is kept up to date by [`keep`](super::keep): never ahead of the bytes.
    #[track_caller]
    fn pour(
        &mut self,
        part: &HandleOf<Self>,
        site: &Site,
        record: &mut Part,
    ) -> Result<Poured, FaultOf<Self>>;

    /// Whether what stands in the open part is what is wanted: its length, and its digest where one is known. Read back from the
    /// file, not from what was seen on its way there.
    #[track_caller]
    fn verify(&mut self, part: &HandleOf<Self>, record: &Part) -> Result<Verified, FaultOf<Self>>;

    /// So many bytes that were here are of no use, for this reason. No deed; people want to know.
    fn discards(&mut self, bytes: u64, why: &str) {
        let _ = (bytes, why);
    }

    /// So many bytes that were here already need not be fetched. No deed.
    fn reuses(&mut self, bytes: u64) {
        let _ = bytes;
    }
}

/// The handle of the disk of a source.
pub(super) type HandleOf<S> = <<S as Source>::Disk as Disk>::Handle;
/// The fault of the disk of a source.
pub(super) type FaultOf<S> = <<S as Source>::Disk as Disk>::Fault;

/// What pouring came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Poured {
    /// Nothing is missing.
    All,
    /// Something is, for this reason.
    Not(Cause),
}

/// What verifying came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// It is what is wanted.
    Right,
    /// It is something else.
    Wrong(String),
}
