//! Which protocol began, with everything that was given to it as plain data. Handles are numbers.

use serde::{Deserialize, Serialize};

use crate::control::Request;
use crate::id::{JobId, Key, PoolName, Ticket, Token};
use crate::place::Place;
use crate::protocol::slot::give_back::Condition;
use crate::record::{Claim, Descriptor, Ground, Line, Outcome, Session, Slot, Status, What};

/// The beginning of a protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "each is the function of `protocol` of the same name, and its arguments"
)]
pub enum Call {
    Claim {
        id: JobId,
    },
    Probe {
        place: Place,
    },
    TreeIsFree {
        id: JobId,
    },
    ClaimTree {
        id: JobId,
    },
    Create {
        descriptor: Descriptor,
        key: Option<(Key, u64)>,
        ticket: Ticket,
        durable: bool,
    },
    Acknowledge,
    CreateBatch {
        descriptors: Vec<Descriptor>,
        ticket: Ticket,
    },
    WithdrawBatch {
        jobs: Vec<(JobId, u32)>,
        ticket: Ticket,
    },
    ChangePool {
        pool: PoolName,
        slots: Option<u32>,
        paused: Option<bool>,
        new: bool,
        #[serde(flatten)]
        ground: Ground,
    },
    ForgetPool {
        pool: PoolName,
    },
    ClaimSupervision,
    IsSupervised,
    Retire {
        lock: u32,
    },
    IsAsked {
        id: JobId,
    },
    FailUnmet {
        id: JobId,
        why: String,
        created_at_ms: u64,
        now_ms: u64,
    },
    LayIn {
        ticket: Ticket,
    },
    Start {
        descriptor: Descriptor,
        key: Key,
        ticket: Ticket,
        durable: bool,
    },
    StartNumbered {
        descriptor: Descriptor,
        key: Key,
        task: String,
        ticket: Ticket,
        durable: bool,
    },
    Forget {
        id: JobId,
        ticket: Ticket,
    },
    MakeFinal,
    Purge {
        ticket: Ticket,
    },
    TakeOver {
        id: JobId,
        lock: u32,
        created_at_ms: u64,
        now_ms: u64,
    },
    Record {
        holder: Holding,
        status: Status,
        notes: Vec<What>,
        durable: bool,
    },
    Note {
        holder: Holding,
        what: What,
        now_ms: u64,
    },
    WritePending {
        holder: Holding,
    },
    Look {
        id: JobId,
    },
    LookAt {
        descriptor: Descriptor,
    },
    Confirm {
        id: JobId,
    },
    RecoverJob {
        id: JobId,
        now_ms: u64,
    },
    Collect {
        ticket: Ticket,
    },
    Request {
        id: JobId,
        request: Request,
        ticket: Ticket,
    },
    Take {
        id: JobId,
    },
    Answered {
        id: JobId,
    },
    Discard {
        id: JobId,
    },
    Settle {
        holder: Holding,
        searched: bool,
        now_ms: u64,
    },
    LetGo {
        holder: Holding,
        created_at_ms: u64,
        now_ms: u64,
    },
    Occupy {
        pool: PoolName,
        number: u32,
        now_ms: u64,
    },
    Leave {
        occupant: InSlot,
    },
    Place {
        pool: PoolName,
        most: u32,
        not_those: Vec<u32>,
        now_ms: u64,
    },
    OpenSession {
        occupant: InSlot,
        claim: Claim,
        session: Session,
        ticket: Ticket,
    },
    TakeBack {
        token: Token,
    },
    ForgetSession {
        token: Token,
    },
    Enter {
        token: Token,
    },
    Renew {
        token: Token,
        expires: Option<String>,
        ticket: Ticket,
    },
    ClaimSlot {
        occupant: InSlot,
        claim: Claim,
    },
    GiveBack {
        occupant: InSlot,
        condition: Condition,
    },
    RemoveSlot {
        occupant: InSlot,
        ticket: Ticket,
    },
    TakeBroken {
        pool: PoolName,
        number: u32,
    },
    Mend {
        occupant: InSlot,
    },
    ClaimMaintenance {
        pool: PoolName,
    },
    EndMaintenance {
        lock: u32,
    },
    Visit {
        pool: PoolName,
        number: u32,
        older_than_ms: Option<u64>,
        now_ms: u64,
    },
    StartMaintenance {
        occupant: InSlot,
        claim: Claim,
    },
    ConcludeMaintenance {
        occupant: InSlot,
        outcome: Outcome,
        now: String,
    },
    LookAtSlot {
        pool: PoolName,
        number: u32,
    },
}

/// What the holder of a job knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// The job.
    pub id: JobId,
    /// The number of its lock.
    pub lock: u32,
    /// The status as it is on disk.
    pub status: Status,
    /// Lines that are true and not in the history yet.
    pub pending: Vec<Line>,
    /// Whether the history may end without a newline.
    pub torn: bool,
    /// Whether some of the pending lines may be in the history all the same.
    pub doubtful: bool,
}

/// What whoever has a slot alone knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InSlot {
    /// The pool.
    pub pool: PoolName,
    /// The number of the slot's lock.
    pub lock: u32,
    /// What is known of the slot.
    pub record: Slot,
    /// The session that is open in it and has expired.
    pub expired: Option<Session>,
    /// Whether it never had a record.
    pub is_new: bool,
}

impl Call {
    /// The name of the protocol, as its function has it.
    pub fn name(&self) -> &'static str {
        match self {
            Call::Claim { .. } => "claim",
            Call::Probe { .. } => "probe",
            Call::TreeIsFree { .. } => "tree_is_free",
            Call::ClaimTree { .. } => "claim_tree",
            Call::Create { .. } => "create",
            Call::Acknowledge => "acknowledge",
            Call::CreateBatch { .. } => "create_batch",
            Call::WithdrawBatch { .. } => "withdraw_batch",
            Call::ChangePool { .. } => "change_pool",
            Call::ForgetPool { .. } => "forget_pool",
            Call::ClaimSupervision => "claim_supervision",
            Call::IsSupervised => "is_supervised",
            Call::Retire { .. } => "retire",
            Call::IsAsked { .. } => "is_asked",
            Call::FailUnmet { .. } => "fail_unmet",
            Call::LayIn { .. } => "lay_in",
            Call::Start { .. } => "start",
            Call::StartNumbered { .. } => "start_numbered",
            Call::Forget { .. } => "forget",
            Call::MakeFinal => "make_final",
            Call::Purge { .. } => "purge",
            Call::TakeOver { .. } => "take_over",
            Call::Record { .. } => "record",
            Call::Note { .. } => "note",
            Call::WritePending { .. } => "write_pending",
            Call::Look { .. } => "look",
            Call::LookAt { .. } => "look_at",
            Call::Confirm { .. } => "confirm",
            Call::RecoverJob { .. } => "recover_job",
            Call::Collect { .. } => "collect",
            Call::Request { .. } => "request",
            Call::Take { .. } => "take",
            Call::Answered { .. } => "answered",
            Call::Discard { .. } => "discard",
            Call::Settle { .. } => "settle",
            Call::LetGo { .. } => "let_go",
            Call::Occupy { .. } => "occupy",
            Call::Leave { .. } => "leave",
            Call::Place { .. } => "place",
            Call::OpenSession { .. } => "open_session",
            Call::TakeBack { .. } => "take_back",
            Call::ForgetSession { .. } => "forget_session",
            Call::Enter { .. } => "enter",
            Call::Renew { .. } => "renew",
            Call::ClaimSlot { .. } => "claim_slot",
            Call::GiveBack { .. } => "give_back",
            Call::RemoveSlot { .. } => "remove_slot",
            Call::TakeBroken { .. } => "take_broken",
            Call::Mend { .. } => "mend",
            Call::ClaimMaintenance { .. } => "claim_maintenance",
            Call::EndMaintenance { .. } => "end_maintenance",
            Call::Visit { .. } => "visit",
            Call::StartMaintenance { .. } => "start_maintenance",
            Call::ConcludeMaintenance { .. } => "conclude_maintenance",
            Call::LookAtSlot { .. } => "look_at_slot",
        }
    }
}
