//! How urgently the operating system runs a thread.

#[cfg(target_os = "linux")]
pub(crate) use linux::ThreadId;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::ThreadId;

#[cfg(target_os = "linux")]
mod linux {
    use rustix::process::{Pid, setpriority_process};
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// The lowest priority.
    const LOWEST_PRIORITY_NICE: i32 = 19;

    /// A thread of this process, as the operating system knows it.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct ThreadId(Pid);

    impl ThreadId {
        pub(crate) fn current() -> Self {
            Self(rustix::thread::gettid())
        }

        /// Lets everything else go before the thread, for good: only a privileged process may take it back. All
        /// threads that are set aside share one processor, so that however many there are the others are free.
        pub(crate) fn deprioritise(self) {
            // Linux takes the number of a thread here. A thread that has just ended has none, and needs none.
            let _ = setpriority_process(Some(self.0), LOWEST_PRIORITY_NICE);
            if let Some(processor) = last_processor() {
                let mut only = CpuSet::new();
                only.set(processor);
                let _ = sched_setaffinity(Some(self.0), &only);
            }
        }
    }

    /// The last of the processors that this thread, and so the process, may use.
    fn last_processor() -> Option<usize> {
        let allowed = sched_getaffinity(None).ok()?;
        (0..CpuSet::MAX_CPU).rev().find(|processor| allowed.is_set(*processor))
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    /// Elsewhere priorities belong to processes, and the scheduler has to do.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct ThreadId;

    impl ThreadId {
        pub(crate) fn current() -> Self {
            Self
        }

        pub(crate) fn deprioritise(self) {}
    }
}
