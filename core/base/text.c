/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

char *text_number(char buf[32], uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n), out = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf[out++] = ',';
		buf[out++] = digits[i];
	}
	buf[out] = '\0';
	return buf;
}

char *text_hex(char *out, const void *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digits[p[i] >> 4];
		out[2 * i + 1] = digits[p[i] & 15];
	}
	out[2 * n] = '\0';
	return out;
}

void text_ascii(char *text, const char *kept)
{
	for (; *text; text++)
		if ((*text < 0x20 || *text > 0x7e) && !strchr(kept, *text))
			*text = '?';
}

char *text_bytes(char buf[32], uint64_t n)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
	double v = (double)n;
	int u = 0;

	for (; v >= 999.5 && u < 4; u++)
		v /= 1000;
	snprintf(buf, 32, u && v < 9.95 ? "%.1f %s" : "%.0f %s", v, units[u]);
	return buf;
}

struct unit {
	const char *name;
	double factor;
};

static int number_with_unit(const char *s, const struct unit *units, uint64_t *ret)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || !isfinite(v) || v < 0)
		return -EINVAL;
	for (; units->name; units++) {
		if (strcasecmp(end, units->name))
			continue;
		v *= units->factor;
		if (v >= 9.2e18)
			return -EINVAL;
		*ret = (uint64_t)(v + 0.5);
		return 0;
	}
	return -EINVAL;
}

int text_duration(const char *s, uint64_t *ns)
{
	static const struct unit units[] = {
		{"", 1e9},   {"s", 1e9},    {"sec", 1e9},  {"ms", 1e6},    {"us", 1e3}, {"ns", 1},
		{"m", 60e9}, {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9}, {NULL, 0},
	};

	return number_with_unit(s, units, ns);
}

int text_size(const char *s, uint64_t *bytes)
{
	static const struct unit units[] = {
		{"", 1},           {"b", 1},       {"k", 1024},         {"kb", 1000},
		{"kib", 1024},     {"m", 1048576}, {"mb", 1e6},         {"mib", 1048576},
		{"g", 1073741824}, {"gb", 1e9},    {"gib", 1073741824}, {NULL, 0},
	};

	return number_with_unit(s, units, bytes);
}

int text_rate(const char *text, double *hz)
{
	char *end;
	double rate = strtod(text, &end);

	if (end != text && !strcasecmp(end, "hz"))
		end += 2;
	if (end == text || *end || !(rate >= 0.1 && rate <= 20000))
		return -EINVAL;
	*hz = rate;
	return 0;
}
