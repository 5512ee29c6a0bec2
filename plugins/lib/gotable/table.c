/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <fusee/gotable.h>

#define MAGIC_1_2 0xfffffffbu
#define MAGIC_1_16 0xfffffffau
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u

enum { FLAG_SPWRITE = 2 };

static uint64_t word(const struct fusee_go_table *go, uint64_t at, unsigned int size, int *bad)
{
	uint64_t v = 0;

	if (at > go->len || size > go->len - at) {
		*bad = 1;
		return 0;
	}
	for (unsigned int i = 0; i < size; i++)
		v |= (uint64_t)go->bytes[at + i] << 8 * i;
	return v;
}

/* ---- the header ---- */

static int version_of(uint64_t magic)
{
	switch (magic) {
	case MAGIC_1_2:
		return FUSEE_GO_1_2;
	case MAGIC_1_16:
		return FUSEE_GO_1_16;
	case MAGIC_1_18:
		return FUSEE_GO_1_18;
	case MAGIC_1_20:
		return FUSEE_GO_1_20;
	default:
		return 0;
	}
}

int fusee_go_open(struct fusee_go_table *go, const void *bytes, size_t len)
{
	uint64_t at = 8 + 16;
	int bad = 0;

	memset(go, 0, sizeof(*go));
	go->bytes = bytes;
	go->len = len;
	go->version = (enum fusee_go_version)version_of(word(go, 0, 4, &bad));
	if (!go->version || word(go, 4, 2, &bad) || word(go, 6, 1, &bad) != 1 ||
	    word(go, 7, 1, &bad) != 8)
		return -ENOENT;
	go->n = word(go, 8, 8, &bad);
	if (go->version == FUSEE_GO_1_2) {
		go->functab = 16;
	} else {
		if (go->version >= FUSEE_GO_1_18) {
			go->text = word(go, at, 8, &bad);
			at += 8;
		}
		go->names = word(go, at, 8, &bad);
		go->pctab = word(go, at + 24, 8, &bad);
		go->functab = word(go, at + 32, 8, &bad);
	}
	if (bad || go->functab > len || go->names > len || go->pctab > len ||
	    go->n >= (len - go->functab) / 8 || go->n > FUSEE_GO_MAX_FUNCTIONS ||
	    go->text >= FUSEE_GO_MAX_ADDRESS)
		return -EBADMSG;
	return 0;
}

/* ---- functions ---- */

static unsigned int pair_size(const struct fusee_go_table *go)
{
	return go->version >= FUSEE_GO_1_18 ? 4 : 8;
}

/* The address of function i, relative to go->text; of i == n the end of the last function. */
static uint64_t entry_of(const struct fusee_go_table *go, uint64_t i, int *bad)
{
	unsigned int size = pair_size(go);

	return word(go, go->functab + i * 2 * size, size, bad);
}

int fusee_go_span(const struct fusee_go_table *go, uint64_t *lo, uint64_t *hi)
{
	int bad = 0;

	*lo = entry_of(go, 0, &bad);
	*hi = entry_of(go, go->n, &bad);
	return bad || !go->n || *lo >= *hi ? -EBADMSG : 0;
}

static void read_name(const struct fusee_go_table *go, uint64_t at, struct fusee_go_func *f)
{
	const char *end;

	f->name = "";
	f->name_len = 0;
	if (__builtin_add_overflow(at, go->names, &at) || at >= go->len)
		return;
	end = memchr(go->bytes + at, 0, go->len - at < 64 ? go->len - at : 64);
	if (!end)
		return;
	f->name = (const char *)go->bytes + at;
	f->name_len = (size_t)(end - f->name);
}

int fusee_go_function(const struct fusee_go_table *go, uint64_t i, struct fusee_go_func *f)
{
	unsigned int size = pair_size(go), head = size;
	uint64_t at, flag_at;
	int bad = 0;

	f->lo = entry_of(go, i, &bad);
	f->hi = entry_of(go, i + 1, &bad);
	at = word(go, go->functab + i * 2 * size + size, size, &bad);
	if (go->version != FUSEE_GO_1_2)
		at += go->functab;
	if (bad || at >= go->len || f->lo >= f->hi || f->hi >= FUSEE_GO_MAX_ADDRESS)
		return -EBADMSG;
	f->lo += go->text;
	f->hi += go->text;
	/* struct _func: entry, name, args, deferreturn, pcsp, pcfile, pcln, npcdata, cuOffset,
	 * [startLine], funcID, flag */
	read_name(go, word(go, at + head, 4, &bad), f);
	f->pcsp = word(go, at + head + 12, 4, &bad) + go->pctab;
	flag_at = at + head + 32 + (go->version == FUSEE_GO_1_20 ? 4 : 0) + 1;
	f->spwrite = go->version >= FUSEE_GO_1_16 && word(go, flag_at, 1, &bad) & FLAG_SPWRITE;
	return bad ? -EBADMSG : 0;
}

/* ---- code ---- */

const uint8_t *fusee_go_code(const struct fusee_go_table *go, uint64_t vaddr, size_t n)
{
	uint64_t at = vaddr - go->code_vaddr;

	if (vaddr < go->code_vaddr || at > go->code_len || n > go->code_len - at)
		return NULL;
	return go->code + at;
}
