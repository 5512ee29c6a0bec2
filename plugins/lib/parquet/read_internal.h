/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PARQUET_READ_INTERNAL_H
#define PARQUET_READ_INTERNAL_H

#include <fusee/parquet_read.h>

#include "internal.h"

/* ---- read_thrift.c: structs in Thrift's compact protocol ---- */

/* The input; after `bad` all values read are 0. */
struct pq_in {
	const uint8_t *at, *end;
	bool bad;
};

/* A field of a struct; {0} before the first. */
struct pq_field {
	int id, type;
};

/* Takes a field's beginning. False: the struct ends, or is bad. Fields ascend. */
bool pq_next(struct pq_in *, struct pq_field *);
/* The value of such a field; another type is bad. */
int64_t pq_get_int(struct pq_in *, const struct pq_field *, enum pq_thrift, int64_t min,
		   int64_t max);
struct fusee_str pq_get_binary(struct pq_in *, const struct pq_field *);
void pq_check_type(struct pq_in *, const struct pq_field *, enum pq_thrift);
/* The number of elements, of this type, that follow. */
uint32_t pq_get_list(struct pq_in *, const struct pq_field *, enum pq_thrift);
void pq_skip(struct pq_in *, const struct pq_field *);
uint64_t pq_get_varint(struct pq_in *);
/* n bytes, NULL: there are fewer. */
const uint8_t *pq_get_bytes(struct pq_in *, uint64_t n);
/* A number of `size` bytes, lowest first. */
uint64_t pq_get_number(struct pq_in *, unsigned int size);

/* ---- read_decode.c: bodies of pages ---- */

/* n values of the RLE / bit-packed hybrid, each 1, 8, 16 or 32 bits wide. */
void pq_get_hybrid(struct pq_in *, unsigned int bits, uint32_t *to, uint64_t n);
/* DELTA_BINARY_PACKED, as pq_put_delta() writes it. */
void pq_get_delta(struct pq_in *, int64_t *to, uint64_t n);
/* PLAIN. */
void pq_get_numbers(struct pq_in *, uint32_t type, int64_t *to, uint64_t n);
void pq_get_texts(struct pq_in *, struct fusee_str *to, uint64_t n);

/* ---- read_codec.c ---- */

/* Decompresses into exactly `raw` bytes. codec: the number in files. 0, -EINVAL, -ENOMEM. */
int pq_decompress(int codec, const uint8_t *from, size_t n, uint8_t *to, size_t raw);
bool pq_codec_known(int64_t codec);

/* ---- read_footer.c, read_schema.c ---- */

/* A column of a row group, in the file. */
struct pq_place {
	uint64_t at, data_at, end; /* its pages; at == data_at: there is no dictionary */
	uint64_t levels;
	uint64_t filter_at, filter_len; /* of its Bloom filter; 0: it has none */
	uint32_t filter;                /* its number in the file */
	int codec;
	struct fusee_str min, max; /* in the footer; min.p NULL: there are none */
};

struct pq_read_group {
	uint64_t rows;
	struct pq_place *places; /* one of each column */
};

struct fusee_parquet_file {
	struct fusee_parquet_input in;
	uint8_t *footer;
	uint64_t footer_len, pages_end;
	struct fusee_parquet_column columns[FUSEE_PARQUET_MAX_COLUMNS];
	uint32_t ncolumns, ngroups, npairs, nfilters;
	struct pq_read_group *groups;
	struct fusee_str (*pairs)[2];
};

/* The columns of `n` elements of a schema. 0, -EINVAL, -ENOMEM. */
int pq_read_schema(struct fusee_parquet_file *, struct pq_in *, uint32_t n);
/* All of the footer's bytes. 0; -EINVAL and *why; -ENOMEM. */
int pq_read_footer(struct fusee_parquet_file *, const char **why);
#endif
