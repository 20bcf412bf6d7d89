// SPDX-License-Identifier: MIT
#include "syscall_table.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/kvm.h>
#include <linux/seccomp.h>
#include <linux/usbdevice_fs.h>
#include <linux/vt.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "descriptor.h"
#include "memory.h"
#include "syscall_numbers.h"

enum {
	DESCRIPTORS_MOVED = DESCRIPTOR_SOCKET | DESCRIPTOR_TERMINAL | DESCRIPTOR_MEMORY,
	// splice_from_pipe_next asks whatever it writes to; a pipe's readers take what there is.
	DESCRIPTORS_SPLICED =
	    DESCRIPTORS_MOVED | DESCRIPTOR_FILE | DESCRIPTOR_OTHER | DESCRIPTOR_UNKNOWN,
	// A peek begins at the first byte again; the other two never wait.
	NOT_RECEIVED_ON = MSG_PEEK | MSG_ERRQUEUE | MSG_OOB,
	SIZE_OF_IO_EVENT = 32,
	SIZE_OF_MMSGHDR = 64,
};

static const struct syscall_rest_rule rest_write = {
    .descriptor = 1,
    .kinds = DESCRIPTORS_MOVED | DESCRIPTOR_PIPE,
    .address = 2,
    .count = 3,
    .socket_nr = SYS_sendto,
};

static const struct syscall_rest_rule rest_writev = {
    .descriptor = 1,
    .kinds = DESCRIPTORS_MOVED | DESCRIPTOR_PIPE,
    .list = LIST_BUFFERS,
    .part_nr = SYS_write,
    .socket_nr = SYS_sendto,
};

// With RWF_NOWAIT and others, the call is not the one that would move the rest.
static const struct syscall_rest_rule rest_pwritev2 = {
    .descriptor = 1,
    .kinds = DESCRIPTORS_MOVED | DESCRIPTOR_PIPE,
    .list = LIST_BUFFERS,
    .part_nr = SYS_pwrite64,
    .position = 4,
    .flags = 6,
    .refused = UINT32_MAX,
};

static const struct syscall_rest_rule rest_pwrite = {
    .descriptor = 1, .kinds = DESCRIPTOR_MEMORY, .address = 2, .count = 3, .position = 4};

static const struct syscall_rest_rule rest_pwritev = {
    .descriptor = 1,
    .kinds = DESCRIPTOR_MEMORY,
    .list = LIST_BUFFERS,
    .part_nr = SYS_pwrite64,
    .position = 4,
};

static const struct syscall_rest_rule rest_read = {
    .descriptor = 1,
    .kinds = DESCRIPTORS_MOVED,
    .address = 2,
    .count = 3,
    .wish = WISH_RECEIVE,
};

static const struct syscall_rest_rule rest_readv = {
    .descriptor = 1,
    .kinds = DESCRIPTORS_MOVED,
    .list = LIST_BUFFERS,
    .part_nr = SYS_read,
    .wish = WISH_RECEIVE,
};

static const struct syscall_rest_rule rest_preadv2 = {
    .descriptor = 1,
    .kinds = DESCRIPTORS_MOVED,
    .list = LIST_BUFFERS,
    .part_nr = SYS_pread64,
    .position = 4,
    .flags = 6,
    .refused = UINT32_MAX,
    .wish = WISH_RECEIVE,
};

static const struct syscall_rest_rule rest_pread = {
    .descriptor = 1, .kinds = DESCRIPTOR_MEMORY, .address = 2, .count = 3, .position = 4};

static const struct syscall_rest_rule rest_preadv = {
    .descriptor = 1,
    .kinds = DESCRIPTOR_MEMORY,
    .list = LIST_BUFFERS,
    .part_nr = SYS_pread64,
    .position = 4,
};

// Each call with MSG_ZEROCOPY gives a completion of its own, which says that the whole buffer is
// free; each one with MSG_OOB makes its last byte urgent.
static const struct syscall_rest_rule rest_sendto = {
    .descriptor = 1,
    .kinds = DESCRIPTOR_SOCKET,
    .address = 2,
    .count = 3,
    .flags = 4,
    .refused = MSG_ZEROCOPY | MSG_FASTOPEN | MSG_OOB,
    .added = MSG_NOSIGNAL,
};

static const struct syscall_rest_rule rest_sendmsg = {
    .descriptor = 1,
    .kinds = DESCRIPTOR_SOCKET,
    .list = LIST_MESSAGE,
    .part_nr = SYS_sendto,
    .flags = 3,
    .refused = MSG_ZEROCOPY | MSG_FASTOPEN | MSG_OOB,
    .added = MSG_NOSIGNAL,
};

static const struct syscall_rest_rule rest_recvfrom = {
    .descriptor = 1,
    .kinds = DESCRIPTOR_SOCKET,
    .address = 2,
    .count = 3,
    .flags = 4,
    .sender = 5,
    .refused = NOT_RECEIVED_ON,
    .wish = WISH_RECEIVE,
};

static const struct syscall_rest_rule rest_recvmsg = {
    .descriptor = 1,
    .kinds = DESCRIPTOR_SOCKET,
    .list = LIST_MESSAGE,
    .part_nr = SYS_recvfrom,
    .flags = 3,
    .refused = NOT_RECEIVED_ON,
    .wish = WISH_RECEIVE,
};

// With MSG_WAITFORONE, a call waits only for its first message.
static const struct syscall_rest_rule rest_recvmmsg = {
    .descriptor = 1,
    .kinds = DESCRIPTOR_SOCKET,
    .address = 2,
    .count = 3,
    .flags = 4,
    .refused = MSG_WAITFORONE,
    .unit = SIZE_OF_MMSGHDR,
    .wish = WISH_MESSAGES_IN,
};

static const struct syscall_rest_rule rest_sendmmsg = {
    .descriptor = 1,
    .kinds = DESCRIPTOR_SOCKET,
    .address = 2,
    .count = 3,
    .flags = 4,
    .unit = SIZE_OF_MMSGHDR,
    .wish = WISH_MESSAGES_OUT,
};

static const struct syscall_rest_rule rest_sendfile = {
    .descriptor = 1, .kinds = DESCRIPTORS_SPLICED, .count = 4, .keeps_file_size = true};

static const struct syscall_rest_rule rest_copy_file_range = {
    .descriptor = 3, .kinds = DESCRIPTORS_SPLICED, .count = 5, .keeps_file_size = true};

// What is in the pipe goes on; the call does not wait for more in the pipe.
static const struct syscall_rest_rule rest_splice = {
    .descriptor = 3,
    .kinds = DESCRIPTORS_SPLICED,
    .count = 5,
    .flags = 6,
    .added = SPLICE_F_NONBLOCK,
    .keeps_file_size = true,
};

static const struct syscall_rest_rule rest_getrandom = {.address = 1, .count = 2};
static const struct syscall_rest_rule rest_getdents = {.address = 2, .count = 3};

static const struct syscall_rest_rule rest_io_getevents = {
    .address = 4,
    .count = 3,
    .least = 2,
    .unit = SIZE_OF_IO_EVENT,
    .wish = WISH_LEAST,
};

static const struct syscall_rest_rule rest_io_uring = {
    .count = 2, .least = 3, .flags = 4, .wish = WISH_COMPLETIONS};

#define CALLS(...)                                                                                 \
	.calls = (const uint16_t[]){__VA_ARGS__},                                                  \
	.n_calls = sizeof((const uint16_t[]){__VA_ARGS__}) / sizeof(uint16_t)
#define CONTINUED(nr, rule, functions)                                                             \
	{                                                                                          \
		CALLS(nr), .fate = SYSCALL_CONTINUED, .rest = &(rule), .kernel = (functions)       \
	}
#define REQUEST(number, request, functions)                                                        \
	{                                                                                          \
		CALLS(number), .when = {{2, (uint32_t)(request)}}, .fate = SYSCALL_WHOLE,          \
		               .kernel = (functions)                                               \
	}

// The first row that fits counts.
static const struct syscall_row rows[] = {
    CONTINUED(SYS_read, rest_read, "get_random_bytes_user, read_zero, n_tty_read, sock_rcvlowat"),
    CONTINUED(SYS_write, rest_write, "pipe_write, iterate_tty_write, unix_stream_sendmsg"),
    CONTINUED(SYS_pread64, rest_pread, "get_random_bytes_user, read_zero, read_mem"),
    CONTINUED(SYS_pwrite64, rest_pwrite, "write_pool_user, write_mem"),
    CONTINUED(SYS_readv, rest_readv, "do_loop_readv_writev, and as read"),
    CONTINUED(SYS_writev, rest_writev, "do_loop_readv_writev, and as write"),
    CONTINUED(SYS_preadv, rest_preadv, "as pread64"),
    CONTINUED(SYS_pwritev, rest_pwritev, "as pwrite64"),
    CONTINUED(SYS_preadv2, rest_preadv2, "as readv where the position is -1, else as preadv"),
    CONTINUED(SYS_pwritev2, rest_pwritev2, "as writev where the position is -1, else as pwritev"),
    CONTINUED(SYS_sendto, rest_sendto, "sk_stream_wait_memory, sock_alloc_send_pskb"),
    CONTINUED(SYS_sendmsg, rest_sendmsg, "sk_stream_wait_memory, sock_alloc_send_pskb"),
    CONTINUED(SYS_recvfrom, rest_recvfrom, "tcp_recvmsg_locked, unix_stream_read_generic"),
    CONTINUED(SYS_recvmsg, rest_recvmsg, "tcp_recvmsg_locked, unix_stream_read_generic"),
    CONTINUED(SYS_recvmmsg, rest_recvmmsg, "do_recvmmsg, which leaves ERESTARTSYS in sk_err"),
    CONTINUED(SYS_sendmmsg, rest_sendmmsg, "__sys_sendmmsg"),
    CONTINUED(SYS_sendfile, rest_sendfile, "splice_direct_to_actor, splice_from_pipe_next"),
    CONTINUED(SYS_copy_file_range, rest_copy_file_range, "do_splice_direct, nfs42_proc_copy"),
    CONTINUED(SYS_splice, rest_splice, "splice_from_pipe_next, splice_to_socket"),
    CONTINUED(SYS_getrandom, rest_getrandom, "get_random_bytes_user"),
    CONTINUED(SYS_getdents, rest_getdents, "filldir"),
    CONTINUED(SYS_getdents64, rest_getdents, "filldir64"),
    CONTINUED(SYS_io_getevents, rest_io_getevents, "read_events"),
    CONTINUED(SYS_io_pgetevents, rest_io_getevents, "read_events"),
    CONTINUED(SYS_io_uring_enter, rest_io_uring, "io_cqring_wait, whose EINTR the count hides"),

    {CALLS(SYS_select, SYS_pselect6, SYS_ppoll), .fate = SYSCALL_WHOLE,
     .kernel = "poll_select_finish: EINTR where it cannot write the time that is left"},
    {CALLS(SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2), .fate = SYSCALL_WHOLE,
     .kernel = "ep_poll"},
    {CALLS(SYS_semop, SYS_semtimedop), .fate = SYSCALL_WHOLE, .kernel = "__do_semtimedop"},
    {CALLS(SYS_rt_sigtimedwait), .fate = SYSCALL_WHOLE, .kernel = "do_sigtimedwait"},
    {CALLS(SYS_connect, SYS_accept, SYS_accept4), .fate = SYSCALL_WHOLE,
     .kernel = "sock_intr_errno: EINTR under SO_SNDTIMEO and SO_RCVTIMEO"},
    // The next two wait for locks that are held for only some microseconds: in ten million calls of
    // bind and a hundred thousand of perf_event_open, at 1,000 Hz, none was interrupted. So no test
    // covers them.
    {CALLS(SYS_bind), .fate = SYSCALL_WHOLE, .kernel = "unix_bind_bsd, unix_autobind"},
    {CALLS(SYS_perf_event_open), .fate = SYSCALL_WHOLE, .kernel = "down_read_interruptible"},
    {CALLS(SYS_fallocate), .fate = SYSCALL_WHOLE, .undisturbed = true,
     .kernel = "hugetlbfs_fallocate, shmem_fallocate"},
    // Tried by hand, with a swap file whose pages two processes share, at 1,000 Hz: 3 of 5 ended
    // with EINTR, and with this 0 of 50. No test covers it: swap space belongs to the whole
    // machine.
    {CALLS(SYS_swapoff), .fate = SYSCALL_WHOLE, .undisturbed = true, .kernel = "try_to_unuse"},
    {CALLS(SYS_bpf), .when = {{1, BPF_PROG_LOAD}}, .fate = SYSCALL_WHOLE, .error = EAGAIN,
     .undisturbed = true, .kernel = "do_check in kernel/bpf/verifier.c"},
    {CALLS(SYS_ioctl), .when = {{2, TCSBRK}, {3, 1}}, .fate = SYSCALL_WHOLE,
     .kernel = "tty_ioctl, for tcdrain(3)"},
    // Other terminals may have sent a part of the break.
    {CALLS(SYS_ioctl), .when = {{2, TCSBRK}}, .kinds = DESCRIPTOR_PTY, .fate = SYSCALL_WHOLE,
     .kernel = "tty_ioctl, send_break"},
    {CALLS(SYS_ioctl), .when = {{2, TCSBRKP}}, .kinds = DESCRIPTOR_PTY, .fate = SYSCALL_WHOLE,
     .kernel = "tty_ioctl, send_break"},
    REQUEST(SYS_ioctl, TIOCSBRK, "tty_ioctl"),
    REQUEST(SYS_ioctl, SECCOMP_IOCTL_NOTIF_RECV, "seccomp_notify_recv"),
    REQUEST(SYS_ioctl, KVM_RUN, "vcpu_run, which ends as soon again if it was told to"),
    // Not tested: the first needs a USB device, the second switches the machine's consoles.
    REQUEST(SYS_ioctl, USBDEVFS_REAPURB, "proc_reapurb"),
    REQUEST(SYS_ioctl, VT_WAITACTIVE, "vt_waitactive"),

    // A file system whose server is a program is told of the interruption, and may then do nothing
    // and answer with EINTR.
    {CALLS(SYS_open, SYS_openat, SYS_openat2, SYS_creat, SYS_stat, SYS_fstat, SYS_lstat,
           SYS_newfstatat, SYS_statx, SYS_lseek, SYS_access, SYS_faccessat, SYS_faccessat2,
           SYS_msync, SYS_fsync, SYS_fdatasync, SYS_syncfs, SYS_sync_file_range, SYS_truncate,
           SYS_ftruncate, SYS_chdir, SYS_fchdir, SYS_chroot, SYS_rename, SYS_renameat,
           SYS_renameat2, SYS_mkdir, SYS_mkdirat, SYS_rmdir, SYS_link, SYS_linkat, SYS_unlink,
           SYS_unlinkat, SYS_symlink, SYS_symlinkat, SYS_readlink, SYS_readlinkat, SYS_chmod,
           SYS_fchmod, SYS_fchmodat, SYS_fchmodat2, SYS_chown, SYS_fchown, SYS_lchown, SYS_fchownat,
           SYS_utime, SYS_utimes, SYS_futimesat, SYS_utimensat, SYS_mknod, SYS_mknodat, SYS_statfs,
           SYS_fstatfs),
     .fate = SYSCALL_WHOLE, .kernel = "request_wait_answer in fs/fuse/dev.c"},
    {CALLS(SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr,
           SYS_listxattr, SYS_llistxattr, SYS_flistxattr, SYS_removexattr, SYS_lremovexattr,
           SYS_fremovexattr, SYS_setxattrat, SYS_getxattrat, SYS_listxattrat, SYS_removexattrat,
           SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_inotify_add_watch, SYS_fanotify_mark,
           SYS_execve, SYS_execveat, SYS_flock, SYS_fcntl, SYS_uselib, SYS_swapon, SYS_acct,
           SYS_file_getattr, SYS_file_setattr),
     .fate = SYSCALL_WHOLE, .kernel = "request_wait_answer in fs/fuse/dev.c"},

    {CALLS(SYS_poll, SYS_nanosleep, SYS_clock_nanosleep, SYS_restart_syscall),
     .fate = SYSCALL_RESTARTED,
     .kernel = "ERESTART_RESTARTBLOCK: do_restart_poll, hrtimer_nanosleep_restart"},
    // FUTEX_WAIT_REQUEUE_PI ends with EAGAIN instead: no sleeper is stopped in it (spared_calls).
    {CALLS(SYS_futex, SYS_futex_waitv, SYS_futex_wait), .fate = SYSCALL_RESTARTED,
     .kernel = "futex_wait, futex_lock_pi, futex_wait_multiple"},
    {CALLS(SYS_pause, SYS_rt_sigsuspend), .fate = SYSCALL_RESTARTED,
     .kernel = "ERESTARTNOHAND: sys_pause, sigsuspend"},
    {CALLS(SYS_wait4, SYS_waitid), .fate = SYSCALL_RESTARTED, .kernel = "do_wait"},
    {CALLS(SYS_msgsnd, SYS_msgrcv), .fate = SYSCALL_RESTARTED, .kernel = "do_msgsnd, do_msgrcv"},
    {CALLS(SYS_mq_timedsend, SYS_mq_timedreceive), .fate = SYSCALL_RESTARTED,
     .kernel = "wq_sleep in ipc/mqueue.c"},
    {CALLS(SYS_clone, SYS_fork, SYS_vfork, SYS_clone3), .fate = SYSCALL_RESTARTED,
     .kernel = "ERESTARTNOINTR: copy_process, before anything is made"},
    // What a pipe has no room for at once is left out in any case.
    {CALLS(SYS_tee, SYS_vmsplice), .fate = SYSCALL_RESTARTED,
     .kernel = "link_ipipe_prep, wait_for_space"},
    {CALLS(SYS_ptrace), .fate = SYSCALL_RESTARTED, .kernel = "ERESTARTNOINTR: ptrace_attach"},
    {CALLS(SYS_add_key, SYS_request_key, SYS_keyctl), .fate = SYSCALL_RESTARTED,
     .kernel = "wait_for_key_construction"},
    {CALLS(SYS_init_module, SYS_finit_module), .fate = SYSCALL_RESTARTED,
     .kernel = "add_unformed_module, idempotent_wait_for_completion"},
    {CALLS(SYS_syslog), .fate = SYSCALL_RESTARTED, .kernel = "syslog_print"},
    {CALLS(SYS_landlock_create_ruleset, SYS_landlock_add_rule, SYS_landlock_restrict_self),
     .fate = SYSCALL_RESTARTED, .kernel = "ERESTARTNOINTR: landlock_restrict_sibling_threads"},

    // The descriptor is closed, whatever the call returns.
    {CALLS(SYS_close, SYS_close_range, SYS_dup2, SYS_dup3, SYS_shutdown), .fate = SYSCALL_LEFT,
     .kernel = "filp_flush, sk_stream_wait_close"},
    // What it starts may fail with EINTR, which its completion shows.
    {CALLS(SYS_io_submit), .fate = SYSCALL_LEFT, .kernel = "aio_rw_done"},
    {CALLS(SYS_ioctl), .fate = SYSCALL_LEFT, .kernel = "vfs_ioctl: each driver's own"},
    {CALLS(SYS_bpf), .fate = SYSCALL_LEFT, .kernel = "bpf_test_timer_continue"},
    {CALLS(SYS_mount, SYS_umount2, SYS_move_mount, SYS_fsconfig, SYS_fsmount, SYS_fsopen,
           SYS_fspick, SYS_open_tree, SYS_mount_setattr, SYS_pivot_root, SYS_quotactl,
           SYS_quotactl_fd, SYS_reboot, SYS_io_uring_register, SYS_getsockopt, SYS_setsockopt,
           SYS_open_tree_attr),
     .fate = SYSCALL_LEFT, .kernel = "each file system's and protocol's own"},

    {CALLS(SYS_mmap, SYS_mprotect, SYS_munmap, SYS_brk, SYS_mremap, SYS_mincore, SYS_madvise,
           SYS_shmget, SYS_shmat, SYS_shmctl, SYS_shmdt, SYS_mlock, SYS_munlock, SYS_mlockall,
           SYS_munlockall, SYS_mlock2, SYS_remap_file_pages, SYS_mbind, SYS_set_mempolicy,
           SYS_get_mempolicy, SYS_migrate_pages, SYS_move_pages, SYS_pkey_mprotect, SYS_pkey_alloc,
           SYS_pkey_free, SYS_process_madvise, SYS_process_mrelease, SYS_memfd_create,
           SYS_memfd_secret, SYS_userfaultfd, SYS_membarrier, SYS_set_mempolicy_home_node,
           SYS_cachestat, SYS_map_shadow_stack, SYS_mseal),
     .fate = SYSCALL_NOT_CUT,
     .kernel = "mmap_write_lock_killable; __get_user_pages: fatal_signal_pending"},
    {CALLS(SYS_process_vm_readv, SYS_process_vm_writev), .fate = SYSCALL_NOT_CUT,
     .kernel = "process_vm_rw_core; __get_user_pages: fatal_signal_pending"},
    {CALLS(SYS_sync, SYS_readahead, SYS_fadvise64), .fate = SYSCALL_NOT_CUT,
     .kernel = "folio_wait_writeback; filemap_get_pages: fatal_signal_pending"},
    {CALLS(SYS_exit, SYS_exit_group, SYS_rt_sigreturn), .fate = SYSCALL_NOT_CUT,
     .kernel = "do_exit; restore_sigcontext: no call any more"},
    {CALLS(SYS_kcmp, SYS_pidfd_getfd, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_setns, SYS_unshare,
           SYS_kexec_load, SYS_kexec_file_load, SYS_delete_module, SYS_seccomp, SYS_prctl,
           SYS_arch_prctl, SYS_prlimit64),
     .fate = SYSCALL_NOT_CUT, .kernel = "down_read_killable, mutex_lock, or no lock"},
    {CALLS(SYS_io_setup, SYS_io_destroy, SYS_io_cancel, SYS_io_uring_setup, SYS_epoll_create,
           SYS_epoll_create1, SYS_epoll_ctl, SYS_eventfd, SYS_eventfd2, SYS_signalfd, SYS_signalfd4,
           SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime, SYS_inotify_init,
           SYS_inotify_init1, SYS_inotify_rm_watch, SYS_fanotify_init, SYS_pipe, SYS_pipe2, SYS_dup,
           SYS_socket, SYS_socketpair, SYS_listen, SYS_getsockname, SYS_getpeername, SYS_mq_open,
           SYS_mq_unlink, SYS_mq_notify, SYS_mq_getsetattr, SYS_semget, SYS_semctl, SYS_msgget,
           SYS_msgctl),
     .fate = SYSCALL_NOT_CUT,
     .kernel = "do_epoll_ctl, __sock_create and others: mutex_lock; exit_aio: wait_for_completion"},
    {CALLS(SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigpending, SYS_rt_sigqueueinfo,
           SYS_rt_tgsigqueueinfo, SYS_sigaltstack, SYS_kill, SYS_tkill, SYS_tgkill, SYS_alarm,
           SYS_getitimer, SYS_setitimer, SYS_timer_create, SYS_timer_settime, SYS_timer_gettime,
           SYS_timer_getoverrun, SYS_timer_delete, SYS_clock_settime, SYS_clock_gettime,
           SYS_clock_getres, SYS_clock_adjtime, SYS_adjtimex, SYS_gettimeofday, SYS_settimeofday,
           SYS_time, SYS_times, SYS_futex_wake, SYS_futex_requeue),
     .fate = SYSCALL_NOT_CUT,
     .kernel = "do_send_sig_info, hrtimer_cancel and others: they do not wait"},
    {CALLS(SYS_sched_yield, SYS_sched_setparam, SYS_sched_getparam, SYS_sched_setscheduler,
           SYS_sched_getscheduler, SYS_sched_get_priority_max, SYS_sched_get_priority_min,
           SYS_sched_rr_get_interval, SYS_sched_setaffinity, SYS_sched_getaffinity,
           SYS_sched_setattr, SYS_sched_getattr, SYS_getpriority, SYS_setpriority, SYS_ioprio_set,
           SYS_ioprio_get, SYS_getcpu, SYS_set_tid_address, SYS_set_robust_list,
           SYS_get_robust_list, SYS_rseq, SYS_personality, SYS_modify_ldt, SYS_iopl, SYS_ioperm),
     .fate = SYSCALL_NOT_CUT,
     .kernel = "__sched_setscheduler, affine_move_task: wait_for_completion"},
    {CALLS(SYS_getpid, SYS_getppid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
           SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_getgroups, SYS_setgroups,
           SYS_setresuid, SYS_getresuid, SYS_setresgid, SYS_getresgid, SYS_setfsuid, SYS_setfsgid,
           SYS_setpgid, SYS_getpgid, SYS_getpgrp, SYS_setsid, SYS_getsid, SYS_capget, SYS_capset,
           SYS_umask, SYS_getrlimit, SYS_setrlimit, SYS_getrusage, SYS_sysinfo, SYS_uname,
           SYS_sethostname, SYS_setdomainname, SYS_getcwd, SYS_ustat, SYS_sysfs, SYS_vhangup,
           SYS_statmount, SYS_listmount, SYS_lsm_get_self_attr, SYS_lsm_set_self_attr,
           SYS_lsm_list_modules),
     .fate = SYSCALL_NOT_CUT, .kernel = "commit_creds and others: they do not wait"},
    {CALLS(SYS_uretprobe, SYS_uprobe), .fate = SYSCALL_NOT_CUT,
     .kernel = "arch_uretprobe_trampoline"},
    {CALLS(SYS__sysctl, SYS_create_module, SYS_get_kernel_syms, SYS_query_module, SYS_nfsservctl,
           SYS_getpmsg, SYS_putpmsg, SYS_afs_syscall, SYS_tuxcall, SYS_security,
           SYS_set_thread_area, SYS_get_thread_area, SYS_lookup_dcookie, SYS_epoll_ctl_old,
           SYS_epoll_wait_old, SYS_vserver),
     .fate = SYSCALL_NOT_CUT, .kernel = "sys_ni_syscall"},
};

static bool has(const struct syscall_row *row, int64_t nr)
{
	for (size_t i = 0; i < row->n_calls; i++)
		if (row->calls[i] == nr)
			return true;
	return false;
}

static bool fits(const struct syscall_row *row, const uint64_t arguments[6])
{
	for (size_t i = 0; i < array_size(row->when); i++) {
		const unsigned int number = row->when[i].argument;
		if (number != 0 && (uint32_t)arguments[number - 1] != row->when[i].value)
			return false;
	}
	return true;
}

const struct syscall_row *syscall_table_find(int64_t nr, const uint64_t arguments[6])
{
	for (size_t i = 0; i < array_size(rows); i++)
		if (has(&rows[i], nr) && fits(&rows[i], arguments))
			return &rows[i];
	return NULL;
}
