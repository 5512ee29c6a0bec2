/* SPDX-License-Identifier: Apache-2.0 */
/* fusee/testing_unwinder.h - the functions of <fusee/testing.h>, which includes this header, for
 * unwinders. */
#ifndef FUSEE_TESTING_UNWINDER_H
#define FUSEE_TESTING_UNWINDER_H

#ifndef FUSEE_TESTING_H
#error "include <fusee/testing.h>"
#endif

static inline struct fusee_testing *fusee_testing_of(struct fusee_instance *in)
{
	return (struct fusee_testing *)(void *)in;
}

static inline struct fusee_testing **fusee_testing_this(void)
{
	static struct fusee_testing *t; /* for host calls without an instance */

	return &t;
}

/* ---- unwinders: the file ---- */

static inline int fusee_testing_file_info(uint64_t file, struct fusee_file_info *info)
{
	(void)file;
	info->machine = 62;
	return 0;
}

static inline int fusee_testing_file_section(uint64_t file, const char *name,
					     struct fusee_section *section)
{
	struct fusee_testing_section *s = (*fusee_testing_this())->sections;

	(void)file;
	for (int i = 0; i < FUSEE_TESTING_SYMBOLS && s[i].name; i++)
		if (!strcmp(s[i].name, name)) {
			*section = s[i].section;
			section->size = sizeof(*section);
			return 0;
		}
	return -ENOENT;
}

/* Copies [at, at + len) from bytes that begin at `from`. 0, or -1: not all of them are there. */
static inline int fusee_testing_copy(struct fusee_str bytes, uint64_t from, uint64_t at, void *buf,
				     uint32_t len)
{
	if (at < from || at - from > bytes.len || len > bytes.len - (at - from))
		return -1;
	memcpy(buf, bytes.p + (at - from), len);
	return 0;
}

static inline int fusee_testing_file_read(uint64_t file, uint64_t vaddr, void *buf, uint32_t len)
{
	struct fusee_testing_section *s = (*fusee_testing_this())->sections;

	(void)file;
	for (int i = 0; i < FUSEE_TESTING_SYMBOLS && s[i].name; i++)
		if (s[i].section.bytes.p &&
		    !fusee_testing_copy(s[i].section.bytes, s[i].section.vaddr, vaddr, buf, len))
			return 0;
	return -ENOENT;
}

static inline int fusee_testing_file_symbol(uint64_t file, const char *name, struct fusee_range *at)
{
	struct fusee_testing_symbol *s = (*fusee_testing_this())->symbols;

	(void)file;
	for (int i = 0; i < FUSEE_TESTING_SYMBOLS && s[i].name; i++)
		if (!strcmp(s[i].name, name)) {
			*at = s[i].at;
			return 0;
		}
	return -ENOENT;
}

static inline int fusee_testing_file_function(uint64_t file, uint64_t vaddr, struct fusee_range *at)
{
	struct fusee_testing_symbol *s = (*fusee_testing_this())->symbols;

	(void)file;
	for (int i = 0; i < FUSEE_TESTING_SYMBOLS && s[i].name; i++)
		if (vaddr >= s[i].at.lo && vaddr < s[i].at.hi) {
			*at = s[i].at;
			return 0;
		}
	return -ENOENT;
}

static inline int fusee_testing_file_slab(struct fusee_instance *in, uint64_t file,
					  const uint32_t *words, uint64_t n)
{
	struct fusee_testing *t = fusee_testing_of(in);

	(void)file;
	if (n > sizeof(t->slab) / sizeof(t->slab[0]))
		return -ENOSPC;
	memcpy(t->slab, words, n * sizeof(*words));
	t->nslab = (uint32_t)n;
	return 0;
}

static inline int fusee_testing_file_claim(struct fusee_instance *in, uint64_t file,
					   const struct fusee_claim *claim)
{
	struct fusee_testing *t = fusee_testing_of(in);

	(void)file;
	if (claim->range.lo >= claim->range.hi ||
	    (claim->flags & ~(uint32_t)(FUSEE_CLAIM_INTERPRETER | FUSEE_CLAIM_REGISTERS |
					FUSEE_CLAIM_READS_NOTHING)) != FUSEE_CLAIM_STEP ||
	    claim->arg >> 31)
		return -EINVAL;
	if (t->nclaims == FUSEE_TESTING_SYMBOLS)
		return -ENOSPC;
	t->claims[t->nclaims++] = *claim;
	return 0;
}

/* ---- unwinders: the process ---- */

static inline int fusee_testing_process_info(uint64_t process, struct fusee_process_info *info)
{
	(void)process;
	*info = (*fusee_testing_this())->process;
	info->size = sizeof(*info);
	return 0;
}

/* As the core does: no component may be a link, and the last must be of the kind that flags name.
 */
static inline int fusee_testing_process_open(uint64_t process, const char *path, uint32_t flags)
{
	const char *root = (*fusee_testing_this())->root;
	char full[4096];
	struct stat st;
	int fd;

	(void)process;
	if (!root || (size_t)snprintf(full, sizeof(full), "%s%s", root, path) >= sizeof(full))
		return -ENOENT;
	if (*path != '/' || strstr(path, "/.."))
		return -EINVAL;
	for (char *slash = full + strlen(root); (slash = strchr(slash + 1, '/')); *slash = '/') {
		*slash = '\0';
		if (lstat(full, &st))
			return -errno;
		if (!S_ISDIR(st.st_mode))
			return -ENOTDIR;
	}
	if (lstat(full, &st))
		return -errno;
	if (flags & FUSEE_OPEN_DIRECTORY ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
		return flags & FUSEE_OPEN_DIRECTORY ? -ENOTDIR : -EINVAL;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* A file in the folder `root` is mapped by its name there. */
static inline int fusee_testing_process_mapped(uint64_t process, const char *name)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof(path), "/%s", name) >= sizeof(path) || strchr(name, '/'))
		return -ENOENT;
	return fusee_testing_process_open(process, path, 0);
}

static inline int fusee_testing_process_read(uint64_t process, uint64_t addr, void *buf,
					     uint32_t len)
{
	struct fusee_testing_memory *m = (*fusee_testing_this())->memory;

	(void)process;
	for (int i = 0; i < FUSEE_TESTING_SYMBOLS && m[i].bytes.p; i++)
		if (!fusee_testing_copy(m[i].bytes, m[i].addr, addr, buf, len))
			return 0;
	return -EFAULT;
}

/* Adds a claim unless its range is empty. 0 or -ENOSPC. */
static inline int fusee_testing_add_claim(struct fusee_testing *t, struct fusee_claim claim,
					  uint64_t lo, uint64_t hi)
{
	if (lo >= hi)
		return 0;
	if (t->nprocess_claims == FUSEE_TESTING_SYMBOLS)
		return -ENOSPC;
	claim.range.lo = lo;
	claim.range.hi = hi;
	t->process_claims[t->nprocess_claims++] = claim;
	return 0;
}

static inline int fusee_testing_process_unclaim(struct fusee_instance *in, uint64_t process,
						struct fusee_range range)
{
	struct fusee_testing *t = fusee_testing_of(in);
	int r = 0;

	(void)process;
	for (uint32_t i = t->nprocess_claims; !r && i-- > 0;) {
		struct fusee_claim old = t->process_claims[i];

		if (old.range.lo >= range.hi || range.lo >= old.range.hi)
			continue;
		t->process_claims[i] = t->process_claims[--t->nprocess_claims];
		r = fusee_testing_add_claim(t, old, old.range.lo, range.lo);
		if (!r)
			r = fusee_testing_add_claim(t, old, range.hi, old.range.hi);
	}
	return r;
}

static inline int fusee_testing_process_claim(struct fusee_instance *in, uint64_t process,
					      const struct fusee_claim *claim)
{
	int r = fusee_testing_process_unclaim(in, process, claim->range);

	if (claim->range.lo >= claim->range.hi)
		return -EINVAL;
	return r ? r
		 : fusee_testing_add_claim(fusee_testing_of(in), *claim, claim->range.lo,
					   claim->range.hi);
}

static inline uint32_t fusee_testing_process_changed(uint64_t process)
{
	(void)process;
	return ++(*fusee_testing_this())->generation;
}

static inline int fusee_testing_process_slab(struct fusee_instance *in, uint64_t process,
					     const uint32_t *words, uint64_t n)
{
	struct fusee_testing *t = fusee_testing_of(in);

	(void)process;
	if (n > sizeof(t->words) / sizeof(t->words[0]))
		return -EFBIG;
	memcpy(t->words, words, n * sizeof(*words));
	t->nwords = (uint32_t)n;
	return 0;
}

static inline int fusee_testing_frame(struct fusee_frame_out *out,
				      const struct fusee_source_frame *f)
{
	struct fusee_testing *t = (struct fusee_testing *)(void *)out;
	size_t at = strlen(t->frames);
	uint32_t flags = f->flags | t->flags;

	snprintf(t->frames + at, sizeof(t->frames) - at, "%.*s:%u%s%s%s;", (int)f->function.len,
		 f->function.p, f->line, flags & FUSEE_FRAME_ASYNC ? ":async" : "",
		 flags & FUSEE_FRAME_BUILTIN ? ":builtin" : "",
		 flags & FUSEE_FRAME_HIDDEN ? ":hidden" : "");
	return 0;
}

static inline void fusee_testing_fill_unwinder(struct fusee_testing *t)
{
	*fusee_testing_this() = t;
	t->unwinder = (struct fusee_unwinder_host){.size = sizeof(t->unwinder),
						   .file_info = fusee_testing_file_info,
						   .file_section = fusee_testing_file_section,
						   .file_read = fusee_testing_file_read,
						   .file_symbol = fusee_testing_file_symbol,
						   .file_function = fusee_testing_file_function,
						   .file_slab = fusee_testing_file_slab,
						   .file_claim = fusee_testing_file_claim,
						   .process_info = fusee_testing_process_info,
						   .process_open = fusee_testing_process_open,
						   .process_read = fusee_testing_process_read,
						   .process_claim = fusee_testing_process_claim,
						   .process_unclaim = fusee_testing_process_unclaim,
						   .process_changed = fusee_testing_process_changed,
						   .process_slab = fusee_testing_process_slab,
						   .frame = fusee_testing_frame,
						   .process_mapped = fusee_testing_process_mapped};
}

/* ---- unwinders: the callbacks ---- */

static inline int fusee_testing_inspect(struct fusee_testing *t)
{
	const struct fusee_unwinder_ops *ops = (const struct fusee_unwinder_ops *)t->plugin->ops;

	t->nclaims = t->nslab = 0;
	return ops->inspect(t->ctx, 1);
}

static inline int fusee_testing_emitted(struct fusee_native *n, __u32 kind, __u64 key)
{
	struct fusee_testing *t = *fusee_testing_this();

	for (uint32_t i = 0; i < t->nemitted; i++)
		if (t->emitted[i] == (key ^ (__u64)kind << 56) + n->u.process)
			return 1;
	return 0;
}

static inline int fusee_testing_emit(struct fusee_native *n, __u32 kind, __u64 key,
				     const void *bytes, __u32 len)
{
	struct fusee_testing *t = *fusee_testing_this();
	const struct fusee_unwinder_ops *ops = (const struct fusee_unwinder_ops *)t->plugin->ops;
	struct fusee_emission e = FUSEE_SIZED(struct fusee_emission, .kind = kind, .key = key,
					      .bytes = {(const char *)bytes, len});

	if (t->nemitted < sizeof(t->emitted) / sizeof(t->emitted[0]))
		t->emitted[t->nemitted++] = (key ^ (__u64)kind << 56) + n->u.process;
	return ops->record(t->ctx, n->u.process, &e) < 0 ? -1 : 0;
}

static inline void fusee_testing_push(struct fusee_testing *t, struct fusee_unwind *u)
{
	const struct fusee_unwinder_ops *ops = (const struct fusee_unwinder_ops *)t->plugin->ops;
	struct fusee_raw_frame raw = FUSEE_SIZED(struct fusee_raw_frame, .process = u->process,
						 .v = {u->pushed[0], u->pushed[1]},
						 .flags = u->push_flags);

	if (u->pushed_words > 2) {
		raw.v[2] = u->pushed[2];
		raw.v[3] = u->pushed[3];
	}
	u->npushed = 0;
	t->flags = raw.flags;
	if (ops->symbolize(t->ctx, &raw, (struct fusee_frame_out *)(void *)t) <= 0)
		strncat(t->frames, "?;", sizeof(t->frames) - strlen(t->frames) - 1);
}

/* The claim that holds the frame: of the file, or of the process's memory. NULL: none. *bias: the
 * distance by which its range is to be moved. */
static inline const struct fusee_claim *
fusee_testing_claim(struct fusee_testing *t, const struct fusee_native *n, uint64_t *bias)
{
	*bias = n->u.bias;
	for (uint32_t i = 0; i < t->nclaims; i++)
		if (n->u.offset - t->claims[i].range.lo <
		    t->claims[i].range.hi - t->claims[i].range.lo)
			return &t->claims[i];
	*bias = 0;
	for (uint32_t i = 0; i < t->nprocess_claims; i++)
		if (n->u.pc - t->process_claims[i].range.lo <
		    t->process_claims[i].range.hi - t->process_claims[i].range.lo)
			return &t->process_claims[i];
	return NULL;
}

/* As over a stack copy: nothing can be read. */
static inline int fusee_testing_blind_step(struct fusee_testing *t, struct fusee_native *n,
					   const struct fusee_claim *claim, uint64_t bias)
{
	const struct fusee_unwinder_ops *ops = (const struct fusee_unwinder_ops *)t->plugin->ops;
	struct fusee_native blind = {.u = n->u};
	int next = FUSEE_AGAIN;

	blind.u.slab_words = blind.u.words = blind.u.valid_regs = 0;
	blind.u.cfa = 0;
	blind.u.claim_lo = claim->range.lo + bias;
	blind.u.claim_arg = claim->arg;
	for (int turn = 0; next == FUSEE_AGAIN && turn < FUSEE_TESTING_TURNS; turn++) {
		next = ops->native_step(&blind.u);
		if (blind.u.npushed)
			fusee_testing_push(t, &blind.u);
	}
	if (next != FUSEE_NATIVE_TOO || blind.u.pc != n->u.pc || blind.u.sp != n->u.sp)
		return -EBADMSG;
	return next;
}

static inline int fusee_testing_step(struct fusee_testing *t, struct fusee_native *n)
{
	const struct fusee_unwinder_ops *ops = (const struct fusee_unwinder_ops *)t->plugin->ops;
	uint64_t bias;
	const struct fusee_claim *claim = fusee_testing_claim(t, n, &bias);
	int next = FUSEE_PASS;

	if (!claim)
		return next;
	if (claim->flags & FUSEE_CLAIM_READS_NOTHING)
		return fusee_testing_blind_step(t, n, claim, bias);
	n->emitted = fusee_testing_emitted;
	n->emit = fusee_testing_emit;
	n->slab = t->slab;
	n->words = t->words;
	n->u.slab_words = t->nslab;
	n->u.words = t->nwords;
	n->u.claim_lo = claim->range.lo + bias;
	n->u.claim_arg = claim->arg;
	if (!(claim->flags & FUSEE_CLAIM_REGISTERS)) {
		n->u.cfa = 0;
		if (!(n->u.flags & FUSEE_PC_EXACT))
			n->u.valid_regs = 0;
	}
	n->u.caller_regs = 0;
	for (int turn = 0; turn < FUSEE_TESTING_TURNS; turn++) {
		next = ops->native_step(&n->u);
		if (n->u.npushed)
			fusee_testing_push(t, &n->u);
		if (next == FUSEE_NEXT || next == FUSEE_NEXT_OMIT)
			n->u.valid_regs = n->u.caller_regs;
		if (next != FUSEE_AGAIN)
			return next;
	}
	return -ELOOP;
}

static inline int fusee_testing_mapped(struct fusee_testing *t, uint64_t process, uint64_t lo,
				       uint64_t hi)
{
	const struct fusee_unwinder_ops *ops = (const struct fusee_unwinder_ops *)t->plugin->ops;
	struct fusee_mapping_view m = FUSEE_SIZED(struct fusee_mapping_view, .lo = lo, .hi = hi);

	return ops->mapped(t->ctx, process, &m);
}

static inline int fusee_testing_library(struct fusee_testing *t, uint64_t process, uint64_t lo,
					uint64_t hi, uint64_t bias)
{
	const struct fusee_unwinder_ops *ops = (const struct fusee_unwinder_ops *)t->plugin->ops;
	struct fusee_mapping_view m = FUSEE_SIZED(struct fusee_mapping_view,
						  .flags = FUSEE_VIEW_LIBRARY, .lo = lo, .hi = hi,
						  .bias = bias);

	m.table.at = t->slab;
	m.table.n = t->nslab;
	m.table.stride = sizeof(t->slab[0]);
	return ops->mapped(t->ctx, process, &m);
}

static inline int fusee_testing_refresh(struct fusee_testing *t, uint64_t process)
{
	const struct fusee_unwinder_ops *ops = (const struct fusee_unwinder_ops *)t->plugin->ops;

	return ops->refresh ? ops->refresh(t->ctx, process) : 0;
}

static inline int fusee_testing_symbolize(struct fusee_testing *t, uint64_t process, uint64_t addr)
{
	const struct fusee_unwinder_ops *ops = (const struct fusee_unwinder_ops *)t->plugin->ops;
	struct fusee_raw_frame raw = FUSEE_SIZED(struct fusee_raw_frame,
						 .generation = t->generation, .process = process,
						 .addr = addr);

	t->flags = 0;
	return ops->symbolize(t->ctx, &raw, (struct fusee_frame_out *)(void *)t);
}

#endif
