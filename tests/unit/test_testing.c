/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers include/fusee
/* <fusee/testing.h>: each call of its host, from callbacks of an unwinder. */
#include "lib/put_file.h"

#include <fusee/testing.h>

static const struct fusee_unwinder_host *unwinder;
static struct fusee_instance *instance;

static int keep(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	instance = in;
	unwinder = host->unwinder;
	for (size_t at = offsetof(struct fusee_unwinder_host, file_info); at < sizeof(*unwinder);
	     at += sizeof(void *)) {
		void *call;

		memcpy(&call, (const char *)unwinder + at, sizeof(call));
		CHECK(call); /* no call of the real host is missing */
	}
	return 0;
}

static int inspect(void *ctx, uint64_t file)
{
	struct fusee_section s;
	char bytes[4];

	CHECK_INT(fusee_file_section(unwinder, file, ".text", &s), 0);
	CHECK_INT(s.vaddr, 0x1000);
	CHECK_INT(fusee_file_section(unwinder, file, ".bss", &s), -ENOENT);
	CHECK_INT(fusee_file_section(unwinder, file, ".data", &s), -ENOENT);
	CHECK_INT(unwinder->file_read(file, 0x1002, bytes, 4), 0);
	CHECK(!memcmp(bytes, "cdef", 4));
	CHECK_INT(unwinder->file_read(file, 0x1003, bytes, 4), -ENOENT);
	CHECK_INT(unwinder->file_read(file, 0xfff, bytes, 1), -ENOENT);
	return 0;
}

static uint32_t claim_flags; /* beside FUSEE_CLAIM_NAME */

static struct fusee_mapping_view library; /* the last */

static int mapped(void *ctx, uint64_t process, const struct fusee_mapping_view *m)
{
	struct fusee_claim claim = FUSEE_SIZED(struct fusee_claim,
					       .flags = FUSEE_CLAIM_NAME | claim_flags,
					       .range = {m->lo, m->hi});

	if (m->flags & FUSEE_VIEW_LIBRARY) {
		library = *m;
		return 0;
	}
	return unwinder->process_claim(instance, process, &claim);
}

static int symbolize(void *ctx, const struct fusee_raw_frame *f, struct fusee_frame_out *out)
{
	struct fusee_source_frame frame = FUSEE_SIZED(
		struct fusee_source_frame, .function = FUSEE_TEXT("jitted"), .line = f->generation);

	return f->addr == 0x5008 ? unwinder->frame(out, &frame) ? -ENOMEM : 1 : 0;
}

static uint64_t seen_cfa, seen_regs;

static int step(struct fusee_unwind *u)
{
	unsigned char byte;

	if (claim_flags & FUSEE_CLAIM_READS_NOTHING) {
		CHECK(fusee_read(u, &byte, 1, u->sp));
		CHECK_INT(u->valid_regs | u->slab_words | u->words, 0);
		fusee_push(u, u->claim_arg, 0);
		u->sp += claim_flags >> 8;
		return FUSEE_NATIVE_TOO;
	}
	seen_cfa = u->cfa;
	seen_regs = u->valid_regs;
	fusee_set_caller_register(u, FUSEE_X86_R12, 12);
	return FUSEE_NEXT;
}

static const struct fusee_unwinder_ops ops = {.size = sizeof(ops),
					      .inspect = inspect,
					      .mapped = mapped,
					      .native_step = step,
					      .symbolize = symbolize};

FUSEE_PLUGIN(toy, FUSEE_UNWINDER, .version = "0.1", .doc = "For the test.", .init = keep,
	     .ops = &ops);

TEST(file)
{
	struct fusee_testing t = {.plugin = &fusee_plugin};

	t.sections[0] = (struct fusee_testing_section){
		".text", {.vaddr = 0x1000, .bytes = FUSEE_TEXT("abcdef")}};
	t.sections[1] = (struct fusee_testing_section){".bss", {.vaddr = 0x2000}};
	CHECK_INT(fusee_testing_init(&t), 0);
	CHECK_INT(fusee_testing_inspect(&t), 0);
	fusee_testing_fini(&t);
}

TEST(process)
{
	struct fusee_testing t = {.plugin = &fusee_plugin, .process = {.pid = 12}};
	struct fusee_process_info info = FUSEE_SIZED(struct fusee_process_info);
	char path[64], bytes[4];
	int fd;

	t.memory[0] = (struct fusee_testing_memory){0x7000, FUSEE_TEXT("wxyz")};
	CHECK_INT(fusee_testing_init(&t), 0);
	CHECK_INT(unwinder->process_info(7, &info), 0);
	CHECK_INT(info.pid, 12);
	CHECK_INT(info.size, sizeof(info));
	CHECK_INT(unwinder->process_read(7, 0x7000, bytes, 4), 0);
	CHECK(!memcmp(bytes, "wxyz", 4));
	CHECK_INT(unwinder->process_read(7, 0x7001, bytes, 4), -EFAULT);

	CHECK_INT(unwinder->process_open(7, "/file", 0), -ENOENT);
	t.root = test_dir();
	snprintf(path, sizeof(path), "%s/file", t.root);
	put_file("file", "");
	fd = unwinder->process_open(7, "/file", 0);
	CHECK(fd >= 0 && !close(fd));
	CHECK_INT(unwinder->process_open(7, "/file", FUSEE_OPEN_DIRECTORY), -ENOTDIR);
	CHECK_INT(unwinder->process_open(7, "/", 0), -EINVAL);
	CHECK_INT(unwinder->process_open(7, "/../file", 0), -EINVAL);
	fd = unwinder->process_open(7, "/", FUSEE_OPEN_DIRECTORY);
	CHECK(fd >= 0 && !close(fd));
	fd = unwinder->process_mapped(7, "file");
	CHECK(fd >= 0 && !close(fd));
	CHECK_INT(unwinder->process_mapped(7, "other"), -ENOENT);
	CHECK(!unlink(path) && !symlink(t.root, path));
	CHECK_INT(unwinder->process_open(7, "/file", 0), -EINVAL);
	CHECK_INT(unwinder->process_open(7, "/file/x", 0), -ENOTDIR);
	fusee_testing_fini(&t);
}

TEST(claims)
{
	struct fusee_testing t = {.plugin = &fusee_plugin};

	CHECK_INT(fusee_testing_init(&t), 0);
	CHECK_INT(fusee_testing_mapped(&t, 7, 0x5000, 0x6000), 0);
	CHECK_INT(fusee_testing_mapped(&t, 7, 0x5800, 0x7000), 0);
	CHECK_INT(t.nprocess_claims, 2);
	CHECK_INT(t.process_claims[0].range.hi, 0x5800); /* it lost what they share */
	CHECK_INT(t.process_claims[1].range.hi, 0x7000);
	CHECK_INT(fusee_testing_mapped(&t, 7, 0x7000, 0x7000), -EINVAL);
	CHECK_INT(fusee_testing_refresh(&t, 7), 0);
	CHECK_INT(fusee_testing_symbolize(&t, 7, 0x5000), 0);
	CHECK_INT(fusee_testing_symbolize(&t, 7, 0x5008), 1);
	CHECK_INT(unwinder->process_changed(7), 2);
	CHECK_INT(fusee_testing_symbolize(&t, 7, 0x5008), 1);
	CHECK_STR(t.frames, "jitted:1;jitted:2;");
	CHECK_INT(unwinder->process_unclaim(instance, 7, (struct fusee_range){0x5800, 0x6800}), 0);
	CHECK_INT(t.nprocess_claims, 2);
	CHECK_INT(t.process_claims[1].range.lo, 0x6800);
	CHECK_INT(unwinder->process_unclaim(instance, 7, (struct fusee_range){0, UINT64_MAX}), 0);
	CHECK_INT(t.nprocess_claims, 0);
	t.slab[1] = 77;
	t.nslab = 2;
	CHECK_INT(fusee_testing_library(&t, 7, 0x5000, 0x6000, 0x400), 0);
	CHECK(FUSEE_HAS(&library, table) && library.bias == 0x400);
	CHECK_INT(library.table.n, 2);
	CHECK_INT(*FUSEE_AT(uint32_t, library.table, 1), 77);
	fusee_testing_fini(&t);
}

/* The step sees registers and the CFA as in fusee: of callers only by the claim's flag. */
TEST(registers)
{
	struct fusee_testing t = {.plugin = &fusee_plugin};
	struct fusee_native n = {0};

	CHECK_INT(fusee_testing_init(&t), 0);
	for (int turn = 0; turn < 4; turn++) {
		claim_flags = FUSEE_CLAIM_STEP | (turn & 1 ? FUSEE_CLAIM_REGISTERS : 0);
		CHECK_INT(fusee_testing_mapped(&t, 7, 0x5000, 0x6000), 0);
		n.u.pc = 0x5010;
		n.u.flags = turn & 2 ? FUSEE_PC_EXACT : 0;
		n.u.cfa = 0x7000;
		n.u.valid_regs = 1u << FUSEE_X86_RBX;
		CHECK_INT(fusee_testing_step(&t, &n), FUSEE_NEXT);
		CHECK_INT(seen_cfa, turn & 1 ? 0x7000 : 0);
		CHECK_INT(seen_regs, turn ? 1u << FUSEE_X86_RBX : 0);
		CHECK_INT(n.u.valid_regs, 1u << FUSEE_X86_R12);
	}
	fusee_testing_fini(&t);
}

static int read_any(struct fusee_native *n, void *to, __u32 len, __u64 addr)
{
	memset(to, 0, len);
	return 0;
}

/* Such a step finds nothing to read, and cannot go on by itself. */
TEST(reads_nothing)
{
	struct fusee_testing t = {.plugin = &fusee_plugin, .nslab = 2, .nwords = 2};
	struct fusee_native n = {.read = read_any, .u = {.offset = 0x1002, .sp = 0x7000}};

	CHECK_INT(fusee_testing_init(&t), 0);
	for (uint32_t changes = 0; changes < 2; changes++) {
		claim_flags = FUSEE_CLAIM_STEP | FUSEE_CLAIM_READS_NOTHING;
		t.nclaims = 0;
		CHECK_INT(unwinder->file_claim(
				  instance, 0,
				  &(struct fusee_claim){.size = sizeof(struct fusee_claim),
							.flags = claim_flags,
							.range = {0x1000, 0x1010},
							.arg = 9}),
			  0);
		claim_flags |= changes << 8;
		n.u.valid_regs = 1u << FUSEE_X86_RBX;
		CHECK_INT(fusee_testing_step(&t, &n), changes ? -EBADMSG : FUSEE_NATIVE_TOO);
		CHECK_INT(n.u.sp, 0x7000);
	}
	claim_flags = 0;
	fusee_testing_fini(&t);
}
