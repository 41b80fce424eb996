// Attempts that need system calls of their own. The first argument names one; the status is 0 where it succeeds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char data[4096];

static int show(int fd) {
	ssize_t n = read(fd, data, sizeof data);
	return n > 0 && write(1, data, n) == n ? 0 : 1;
}

static int done(long result) { return result < 0 ? (perror("attempt"), 1) : 0; }

static struct sockaddr_in inet(const char *host, const char *port) {
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
	inet_pton(AF_INET, host, &to.sin_addr);
	return to;
}

static int dial(int fd, const void *to, socklen_t size) {
	return done(fd < 0 ? fd : connect(fd, to, size)) || done(write(fd, "x", 1));
}

static int dial_unix(const char *path, int abstract) {
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	strncpy(to.sun_path + abstract, path, sizeof to.sun_path - 2);
	if (done(fd) || done(connect(fd, (void *)&to, offsetof(struct sockaddr_un, sun_path) + abstract + strlen(path)))) exit(1);
	return fd;
}

static int receive(int fd) {
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec piece = {data, 1};
	struct msghdr m = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	if (recvmsg(fd, &m, 0) < 0 || !CMSG_FIRSTHDR(&m)) return 1;
	return show(*(int *)CMSG_DATA(CMSG_FIRSTHDR(&m)));
}

// One operation of io_uring, by hand.
static int uring(struct io_uring_sqe op) {
	struct io_uring_params p = {0};
	int ring = syscall(SYS_io_uring_setup, 1, &p);
	if (done(ring)) return -1;
	char *sq = mmap(0, p.sq_off.array + p.sq_entries * 4 + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	char *cq = mmap(0, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
	struct io_uring_sqe *sqes = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || sqes == MAP_FAILED) return -1;
	sqes[0] = op;
	((uint32_t *)(sq + p.sq_off.array))[0] = 0;
	*(uint32_t *)(sq + p.sq_off.tail) += 1;
	if (done(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0))) return -1;
	return ((struct io_uring_cqe *)(cq + p.cq_off.cqes))[0].res;
}

static int uring_read(const char *path) {
	int fd = uring((struct io_uring_sqe){.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (uintptr_t)path, .open_flags = O_RDONLY});
	return fd < 0 ? 1 : show(fd);
}

static int uring_connect(const char *port) {
	struct sockaddr_in to = inet("127.0.0.1", port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	return uring((struct io_uring_sqe){.opcode = IORING_OP_CONNECT, .fd = fd, .addr = (uintptr_t)&to, .off = sizeof to}) < 0;
}

// The value of a variable of another process, from its memory.
static int memory(int pid, const char *from) {
	uintptr_t at = strtoull(from, 0, 16);
	struct iovec local = {data, 256}, remote = {(void *)at, 256};
	return done(process_vm_readv(pid, &local, 1, &remote, 1, 0)) || write(1, data, 256) != 256;
}

static int trace(int pid) {
	return done(ptrace(PTRACE_ATTACH, pid, 0, 0)) || (waitpid(pid, 0, __WALL), done(ptrace(PTRACE_KILL, pid, 0, 0)));
}

// The kernel kills the owner of a pipe or socket when something is written.
static int sigio(int pid, int by_ioctl) {
	int ends[2];
	if (by_ioctl ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) return 1;
	if (done(by_ioctl ? ioctl(ends[0], FIOSETOWN, &pid) : fcntl(ends[0], F_SETOWN, pid)) || done(fcntl(ends[0], F_SETSIG, SIGKILL))) return 1;
	if (done(fcntl(ends[0], F_SETFL, O_ASYNC))) return 1;
	return write(ends[1], "x", 1) != 1;
}

static int by_pidfd(int pid, int what, int fd) {
	int of = syscall(SYS_pidfd_open, pid, 0);
	if (done(of)) return 1;
	if (what == SYS_pidfd_getfd) {
		int copy = syscall(SYS_pidfd_getfd, of, fd, 0);
		return done(copy) || lseek(copy, 0, SEEK_SET) || show(copy);
	}
	return done(what == SYS_setns ? setns(of, CLONE_NEWUTS) : syscall(SYS_pidfd_send_signal, of, SIGKILL, 0, 0));
}

// The directory of a process or thread in /proc stands for it.
static int by_directory(const char *path) {
	return done(syscall(SYS_pidfd_send_signal, open(path, O_RDONLY | O_DIRECTORY), SIGKILL, 0, 0));
}

static int execute_memory(const char *program, char **args) {
	int from = open(program, O_RDONLY), to = memfd_create("program", 0);
	ssize_t n;
	while ((n = read(from, data, sizeof data)) > 0)
		if (write(to, data, n) != n) return 1;
	return done(fexecve(to, args, environ));
}

static int by_handle(const char *path) {
	char space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	struct file_handle *h = (void *)space;
	int mount;
	h->handle_bytes = MAX_HANDLE_SZ;
	if (done(name_to_handle_at(AT_FDCWD, path, h, &mount, 0))) return 1;
	int root = open("/usr", O_RDONLY), fd = open_by_handle_at(root, h, O_RDONLY);
	return done(fd) || show(fd);
}

static int fast_open(const char *port) {
	struct sockaddr_in to = inet("127.0.0.1", port);
	return done(sendto(socket(AF_INET, SOCK_STREAM, 0), "x", 1, MSG_FASTOPEN, (void *)&to, sizeof to));
}

static int datagram(const char *port) {
	struct sockaddr_in to = inet("127.0.0.1", port);
	return done(sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (void *)&to, sizeof to));
}

static int mapped(const char *port) {
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(port))};
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.sin6_addr);
	return dial(socket(AF_INET6, SOCK_STREAM, 0), &to, sizeof to);
}

static int dial_inet(const char *host, const char *port, int protocol) {
	struct sockaddr_in to = inet(host, port);
	return dial(socket(AF_INET, SOCK_STREAM, protocol), &to, sizeof to);
}

// The port listens inside at 127.0.0.1, and outside at 127.0.0.2.
static int same_port(const char *port) {
	struct sockaddr_in at = inet("127.0.0.1", port);
	int own = socket(AF_INET, SOCK_STREAM, 0);
	if (done(bind(own, (void *)&at, sizeof at)) || done(listen(own, 1))) return 1;
	return dial_inet("127.0.0.2", port, 0);
}

static int shared(int id) {
	char *at = shmat(id, 0, SHM_RDONLY);
	return done((intptr_t)at) || puts(at) < 0;
}

static int queue(int id) {
	struct { long type; char text[100]; } m = {0};
	return done(msgrcv(id, &m, sizeof m.text, 0, IPC_NOWAIT)) || puts(m.text) < 0;
}

static int key(int id) {
	long n = syscall(SYS_keyctl, 11, id, data, sizeof data);
	return done(n) || write(1, data, n) != n;
}

#ifdef __x86_64__
// The system calls of 32-bit programs, by their own numbers.
static int old_read(const char *path) {
	char *low = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long fd;
	strcpy(low, path);
	__asm__ volatile("int $0x80" : "=a"(fd) : "a"(5), "b"(low), "c"(O_RDONLY), "d"(0) : "memory");
	return (int)fd < 0 ? 1 : show(fd);
}

// A socket by socketcall, connected by socketcall.
static int old_connect(const char *port) {
	uint32_t *low = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	struct sockaddr_in *to = (void *)(low + 8);
	long fd, result;
	*to = inet("127.0.0.1", port);
	low[0] = AF_INET, low[1] = SOCK_STREAM, low[2] = 0;
	__asm__ volatile("int $0x80" : "=a"(fd) : "a"(102), "b"(1), "c"(low) : "memory");
	low[0] = fd, low[1] = (uintptr_t)to, low[2] = sizeof *to;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(102), "b"(3), "c"(low) : "memory");
	return (int)result < 0;
}
#else
static int old_read(const char *path) { (void)path; return 1; }
static int old_connect(const char *port) { (void)port; return 1; }
#endif

static int remount(void) {
	return done(unshare(CLONE_NEWUSER | CLONE_NEWNS)) || done(mount("none", "/tmp", "tmpfs", 0, 0));
}

static int perf(int pid) {
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .size = sizeof a, .config = PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = 1};
	return done(syscall(SYS_perf_event_open, &a, pid, -1, -1, 0));
}

static int map(void) {
	union bpf_attr a = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	return done(syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof a));
}

int main(int n, char **arg) {
	const char *what = n > 1 ? arg[1] : "", *a = n > 2 ? arg[2] : "", *b = n > 3 ? arg[3] : "", *c = n > 4 ? arg[4] : "";
	int pid = atoi(a);
	cpu_set_t first;
	struct rlimit low = {7, 7};
#define IS(name) if (!strcmp(what, name))
	IS("read") return show(open(a, O_RDONLY));
	IS("write") return done(write(open(a, O_WRONLY | O_TRUNC), "x", 1));
	IS("uring-read") return uring_read(a);
	IS("uring-connect") return uring_connect(a);
	IS("memory") return memory(pid, b);
	IS("trace") return trace(pid);
	IS("sigio") return sigio(pid, *b);
	IS("pidfd-getfd") return by_pidfd(pid, SYS_pidfd_getfd, atoi(b));
	IS("pidfd-signal") return by_pidfd(pid, SYS_pidfd_send_signal, 0);
	IS("setns") return by_pidfd(pid, SYS_setns, 0);
	IS("directory-signal") return by_directory(a);
	IS("tgkill") return done(syscall(SYS_tgkill, pid, pid, SIGKILL));
	IS("prlimit") return done(prlimit(pid, RLIMIT_NOFILE, &low, 0));
	IS("nice") return done(setpriority(PRIO_PROCESS, pid, 7));
	IS("affinity") { CPU_ZERO(&first); CPU_SET(0, &first); return done(sched_setaffinity(pid, sizeof first, &first)); }
	IS("memfd") return execute_memory(a, arg + 2);
	IS("exchange") return done(renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE));
	IS("tmpfile") return done(open(a, O_TMPFILE | O_WRONLY, 0600));
	IS("truncate") return done(truncate(a, 0));
	IS("handle") return by_handle(a);
	IS("device") return done(mknod(a, S_IFCHR | 0600, makedev(1, 3)));
	IS("remount") return remount();
	IS("hostname") return gethostname(data, 64) || done(sethostname(data, strlen(data)));
	IS("socket") return done(socket(pid, atoi(b), atoi(c)));
	IS("connect") return dial_inet(a, b, atoi(c));
	IS("fast-open") return fast_open(a);
	IS("datagram") return datagram(a);
	IS("mapped") return mapped(a);
	IS("same-port") return same_port(a);
	IS("unix") return write(dial_unix(a, 0), "x", 1) != 1;
	IS("abstract") return write(dial_unix(a, 1), "x", 1) != 1;
	IS("receive") return receive(dial_unix(a, 0));
	IS("shm") return shared(pid);
	IS("msg") return queue(pid);
	IS("key") return key(pid);
	IS("old-read") return old_read(a);
	IS("old-connect") return old_connect(a);
	IS("perf") return perf(pid);
	IS("bpf") return map();
	IS("userfaultfd") return done(syscall(SYS_userfaultfd, 1));
	IS("other-user") return geteuid() == getuid();
	return 2;
}

// preloaded reads for whatever program this library is loaded into.
__attribute__((constructor)) static void preloaded(void) {
	const char *path = getenv("PRELOADED");
	if (path) show(open(path, O_RDONLY));
}
