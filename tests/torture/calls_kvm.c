// SPDX-License-Identifier: MIT
// KVM_RUN, which any signal ends: a guest that counts for a while and then calls for its host.
#include <linux/kvm.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "torture.h"

#ifdef __x86_64__

enum { PAGE = 4096, GUEST_ADDRESS = 0x1000, PORT = 0x10 };

// mov $0x0fff,%cx; loop .; out %al,$PORT; and again
static const unsigned char guest_code[] = {0xb9, 0xff, 0x0f, 0xe2, 0xfe, 0xe6, PORT, 0xeb, 0xf7};

// The descriptor of a machine's only processor; -1: not permitted here.
static int open_guest(struct kvm_run **ret_run)
{
	const int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	const int machine = ioctl(kvm, KVM_CREATE_VM, 0);
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct kvm_userspace_memory_region region = {
	    .guest_phys_addr = GUEST_ADDRESS,
	    .memory_size = PAGE,
	    .userspace_addr = (uintptr_t)memory,
	};
	const struct kvm_regs registers = {.rip = GUEST_ADDRESS, .rflags = 2};
	struct kvm_sregs segments;

	memcpy(memory, guest_code, sizeof(guest_code));
	ioctl(machine, KVM_SET_USER_MEMORY_REGION, &region);
	const int processor = ioctl(machine, KVM_CREATE_VCPU, 0);
	const int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (processor < 0 || size <= 0 || ioctl(processor, KVM_GET_SREGS, &segments) != 0)
		return -1;
	segments.cs.base = segments.cs.selector = 0;
	ioctl(processor, KVM_SET_SREGS, &segments);
	ioctl(processor, KVM_SET_REGS, &registers);
	*ret_run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, processor, 0);
	return processor;
}

FRAME void cut_kvm_run(struct kind *kind)
{
	static struct kvm_run *run;
	static int processor;

	if (!processor)
		processor = open_guest(&run);
	if (processor < 0) {
		leave_out(kind, "KVM");
		return;
	}
	const int result = ioctl(processor, KVM_RUN, 0);
	if (result != 0 || run->exit_reason != KVM_EXIT_IO)
		fault(kind, "run", result);
}

#else

FRAME void cut_kvm_run(struct kind *kind)
{
	leave_out(kind, "KVM");
}

#endif
