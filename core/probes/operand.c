/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax is that of x86-64 (AT&T). Another machine has another read_place(). */
#include "probes/operand.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 48 /* bytes of an argument, in a sentence */

/* What of the text is not read yet. */
struct reader {
	const char *p, *end;
};

static bool take(struct reader *r, char c)
{
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

/* A number with a sign, decimal or hexadecimal. false: it is none, or has more than 64 bits. */
static bool take_number(struct reader *r, __s64 *ret)
{
	bool negative = take(r, '-');
	uint64_t n = 0, base = 10;
	const char *begin;

	if (r->end - r->p > 2 && r->p[0] == '0' && r->p[1] == 'x') {
		base = 16;
		r->p += 2;
	}
	for (begin = r->p; r->p < r->end && isxdigit((unsigned char)*r->p); r->p++) {
		unsigned char c = (unsigned char)*r->p;
		uint64_t digit = isdigit(c) ? c - (uint64_t)'0' : (uint64_t)tolower(c) - 'a' + 10;

		if (digit >= base || n > (UINT64_MAX - digit) / base)
			return false;
		n = n * base + digit;
	}
	*ret = (__s64)(negative ? 0 - n : n);
	return r->p > begin && (!negative || n <= 1ull << 63);
}

/* ---- registers ---- */

/* By their words in struct user_regs of bpf/kernel.h: names of 64, 32, 16 and 8 bits. */
static const struct {
	uint32_t word;
	const char *names[4];
} registers[] = {
	{10, {"rax", "eax", "ax", "al"}},
	{5, {"rbx", "ebx", "bx", "bl"}},
	{11, {"rcx", "ecx", "cx", "cl"}},
	{12, {"rdx", "edx", "dx", "dl"}},
	{13, {"rsi", "esi", "si", "sil"}},
	{14, {"rdi", "edi", "di", "dil"}},
	{4, {"rbp", "ebp", "bp", "bpl"}},
	{19, {"rsp", "esp", "sp", "spl"}},
	{9, {"r8", "r8d", "r8w", "r8b"}},
	{8, {"r9", "r9d", "r9w", "r9b"}},
	{7, {"r10", "r10d", "r10w", "r10b"}},
	{6, {"r11", "r11d", "r11w", "r11b"}},
	{3, {"r12", "r12d", "r12w", "r12b"}},
	{2, {"r13", "r13d", "r13w", "r13b"}},
	{1, {"r14", "r14d", "r14w", "r14b"}},
	{0, {"r15", "r15d", "r15w", "r15b"}},
	/* the second byte of the first four */
	{10, {"ah"}},
	{5, {"bh"}},
	{11, {"ch"}},
	{12, {"dh"}},
};

#define RIP 16u /* its word */
#define REGISTERS (sizeof(registers) / sizeof(*registers))
#define COMPLETE 16u /* of them */

/* Reads "%rdi". Its bits, which begin at *shift; 0: it is none. */
static uint32_t take_register(struct reader *r, uint32_t *word, uint32_t *shift)
{
	size_t len = 0;

	if (!take(r, '%'))
		return 0;
	while (len < (size_t)(r->end - r->p) && isalnum((unsigned char)r->p[len]))
		len++;
	for (size_t i = 0; i < REGISTERS; i++)
		for (size_t k = 0; k < 4 && registers[i].names[k]; k++) {
			const char *name = registers[i].names[k];

			if (strlen(name) != len || memcmp(name, r->p, len) != 0)
				continue;
			r->p += len;
			*word = registers[i].word;
			*shift = i < COMPLETE ? 0 : 8;
			return i < COMPLETE ? 64u >> k : 8;
		}
	return 0;
}

/* ---- places ---- */

/* A part of an address. */
static bool take_address(struct reader *r, uint32_t *word)
{
	uint32_t shift;

	return take_register(r, word, &shift) == 64;
}

/* Reads ",%rcx,8", whose last part may be missing. */
static bool take_index(struct reader *r, struct probe_operand *o)
{
	__s64 scale = 1;

	if (!take_address(r, &o->index))
		return false;
	if (take(r, ',') && !take_number(r, &scale))
		return false;
	for (o->shift = 0; o->shift < 4; o->shift++)
		if (scale == 1 << o->shift)
			return true;
	return false;
}

/* Reads "-16(%rbp)", "8(%rax,%rcx,8)", "(,%rcx,4)". */
static bool read_memory(struct reader *r, struct probe_operand *o)
{
	o->kind = OPERAND_MEMORY;
	if (r->p < r->end && *r->p != '(' && !take_number(r, &o->number))
		return false;
	if (!take(r, '(') || (r->p < r->end && *r->p != ',' && !take_address(r, &o->base)))
		return false;
	if (take(r, ',') && !take_index(r, o))
		return false;
	return take(r, ')') && (o->base != NO_REGISTER || o->index != NO_REGISTER);
}

static bool is_of_symbol(unsigned char c)
{
	return isalnum(c) || c == '_' || c == '.' || c == '$';
}

/* Reads a variable: "NBuffers(%rip)", "40+Stats(%rip)", "Stats-8(%rip)". */
static bool read_variable(struct reader *r, struct probe_operand *o, struct operand_symbol *symbol)
{
	static const char tail[] = "(%rip)";
	const size_t len = sizeof(tail) - 1;
	struct reader name = {r->p, r->end - len};
	__s64 more = 0;

	if ((size_t)(r->end - r->p) <= len || memcmp(name.end, tail, len) != 0)
		return false;
	if ((isdigit((unsigned char)*name.p) || *name.p == '-') &&
	    !(take_number(&name, &o->number) && take(&name, '+')))
		return false;
	for (symbol->p = name.p; name.p < name.end && is_of_symbol((unsigned char)*name.p);)
		name.p++;
	symbol->len = (size_t)(name.p - symbol->p);
	if (!symbol->len || isdigit((unsigned char)*symbol->p))
		return false;
	if ((take(&name, '+') || name.p < name.end) && !take_number(&name, &more))
		return false;
	o->kind = OPERAND_MEMORY;
	o->base = RIP;
	o->number = (__s64)((uint64_t)o->number + (uint64_t)more);
	r->p = name.p == name.end ? r->end : name.p;
	return true;
}

static bool read_place(struct reader *r, struct probe_operand *o, struct operand_symbol *symbol)
{
	if (take(r, '$')) {
		o->kind = OPERAND_NUMBER;
		return take_number(r, &o->number);
	}
	if (r->p < r->end && *r->p == '%') {
		o->kind = OPERAND_REGISTER;
		return take_register(r, &o->base, &o->shift) >= o->bits;
	}
	return read_variable(r, o, symbol) || read_memory(r, o);
}

/* Reads "-4@", the bytes of the argument; with a sign it has one, too. */
static bool read_size(struct reader *r, struct probe_operand *o)
{
	__s64 bytes;

	o->is_signed = take(r, '-');
	if (!take_number(r, &bytes) || !take(r, '@'))
		return false;
	o->bits = (uint32_t)bytes * 8;
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

/* ---- arguments ---- */

/* The argument of this number: its bytes from *begin on; 0: there is none, and *n are. */
static size_t find(const char *p, uint32_t number, const char **begin, uint32_t *n)
{
	for (*n = 0; *(p += strspn(p, " ")); ++*n) {
		size_t len = strcspn(p, " ");

		*begin = p;
		if (*n == number)
			return len;
		p += len;
	}
	return 0;
}

static bool is_printable(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isgraph((unsigned char)p[i]))
			return false;
	return true;
}

int operand_find(const char *arguments, uint32_t number, struct probe_operand *o,
		 struct operand_symbol *symbol, char *why, size_t len)
{
	const char *begin = arguments;
	uint32_t n;
	size_t bytes = find(arguments, number, &begin, &n);
	struct reader r = {begin, begin + bytes};

	*o = (struct probe_operand){.base = NO_REGISTER, .index = NO_REGISTER};
	*symbol = (struct operand_symbol){NULL, 0};
	if (!bytes) {
		snprintf(why, len, "has %u arguments, the first is arg0", n);
		return -ENOTSUP;
	}
	if (read_size(&r, o) && read_place(&r, o, symbol) && r.p == r.end)
		return 0;
	if (bytes <= SHOWN && is_printable(begin, bytes))
		snprintf(why, len, "has arg%u at '%.*s', which is not read", number, (int)bytes,
			 begin);
	else
		snprintf(why, len, "has arg%u at a place that is not read", number);
	return -ENOTSUP;
}
