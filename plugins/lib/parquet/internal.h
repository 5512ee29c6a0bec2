/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PARQUET_INTERNAL_H
#define PARQUET_INTERNAL_H

#include <stdbool.h>

#include <fusee/bytes.h>
#include <fusee/parquet.h>

/* ---- thrift.c: structs in Thrift's compact protocol ---- */

enum pq_thrift { PQ_BOOL = 1, PQ_I8 = 3, PQ_I32 = 5, PQ_I64 = 6, PQ_BINARY = 8, PQ_STRUCT = 12 };

/* A struct that is being written; its fields are put in ascending order of their numbers. */
struct pq_struct {
	struct fusee_bytes *to;
	int last; /* the number of the field before */
};

void pq_bool(struct pq_struct *, int field, bool);
void pq_i32(struct pq_struct *, int field, int32_t);
void pq_i64(struct pq_struct *, int field, int64_t);
void pq_binary(struct pq_struct *, int field, struct fusee_str);
/* A field with a struct in it; pq_end() ends it. */
struct pq_struct pq_begin(struct pq_struct *, int field);
/* A field with n elements, which the caller appends. */
void pq_list(struct pq_struct *, int field, enum pq_thrift, uint32_t n);
/* Elements of a list. */
struct pq_struct pq_begin_element(struct fusee_bytes *);
void pq_put_i32(struct fusee_bytes *, int32_t);
void pq_put_i64(struct fusee_bytes *, int64_t);
void pq_put_binary(struct fusee_bytes *, struct fusee_str);
void pq_end(struct pq_struct *);

/* ---- dictionary.c: the distinct values of a column ---- */

/* Zeroed is empty; `seed` for hashes is set by the owner. */
struct pq_dictionary {
	bool is_text;
	uint64_t seed;
	uint64_t *values; /* numbers, or where texts begin */
	uint64_t values_cap;
	uint32_t *lens; /* of texts */
	uint64_t lens_cap;
	struct fusee_bytes text;
	uint32_t n;
	uint32_t *slots; /* code + 1 of a value; 0: empty */
	uint32_t nslots; /* a power of 2 */
};

/* The code of a value, which is added if it is new; -errno. */
int64_t pq_dictionary_number(struct pq_dictionary *, int64_t);
int64_t pq_dictionary_text(struct pq_dictionary *, struct fusee_str);
/* Sorts the values; ranks[code] is the new place of the value with this code. 0, -ENOMEM. */
int pq_dictionary_sort(struct pq_dictionary *, uint32_t *ranks);
struct fusee_str pq_dictionary_text_at(const struct pq_dictionary *, uint32_t code);
/* Removes all values. */
void pq_dictionary_empty(struct pq_dictionary *);
void pq_dictionary_fini(struct pq_dictionary *);
/* The memory of its values. */
uint64_t pq_dictionary_bytes(const struct pq_dictionary *);

/* ---- text.c ---- */

bool pq_is_utf8(struct fusee_str);
/* A UTF-8 text of at most 64 bytes that sorts not after, or not before, `text`. *exact: it equals
 * `text`. upper: `text` itself if there is no such text. */
struct fusee_str pq_lower_bound(struct fusee_str text, bool *exact);
struct fusee_str pq_upper_bound(struct fusee_str text, char room[64], bool *exact);

/* ---- encode.c: bodies of pages ---- */

/* Bytes of a code in a page of codes below n: 1, 2 or 4. After compression they are smaller than
 * codes of incomplete bytes. */
unsigned int pq_code_size(uint32_t n);
/* Values in the RLE / bit-packed hybrid, each `bits` wide: 1, 8, 16 or 32. */
void pq_put_hybrid(struct fusee_bytes *, const uint32_t *values, uint64_t n, unsigned int bits);
/* PLAIN, values [first, first + n) of a dictionary; codes: those values instead, if not NULL. */
void pq_put_plain(struct fusee_bytes *, const struct pq_dictionary *, uint32_t type,
		  const uint32_t *codes, uint64_t n);
/* DELTA_BINARY_PACKED of numbers, in blocks of PQ_DELTA_BLOCK with PQ_DELTA_MINI parts. */
#define PQ_DELTA_BLOCK 128
#define PQ_DELTA_MINI 4
#define PQ_DELTA_VALUES (PQ_DELTA_BLOCK / PQ_DELTA_MINI)
void pq_put_delta(struct fusee_bytes *, const struct pq_dictionary *, const uint32_t *codes,
		  uint64_t n);
void pq_put_value(struct fusee_bytes *, const struct pq_dictionary *, uint32_t type, uint32_t code);

/* ---- filter.c: Bloom filters of texts, in split blocks ---- */

#define PQ_FILTER_BLOCK 32 /* bytes */
/* The pair of a file's own metadata that has the CRC-32 of each filter, 8 hexadecimal digits each,
 * in the order of row groups and columns. */
#define PQ_FILTERS "fusee.filters_crc32"

/* The filter of all values, with its header. */
void pq_put_filter(struct fusee_bytes *, const struct pq_dictionary *);
/* Whether the blocks have the text. n: their bytes, a multiple of PQ_FILTER_BLOCK. */
bool pq_filter_has(const uint8_t *blocks, uint64_t n, struct fusee_str);

/* ---- codec.c ---- */

/* Number of the codec in files. */
int pq_codec_number(uint32_t codec);
/* Compresses `from` into `to`, which is emptied before. 0 or -errno. */
int pq_compress(const struct fusee_parquet_options *, const struct fusee_bytes *from,
		struct fusee_bytes *to);

/* ---- the writer ---- */

/* A column while rows are added. */
struct pq_leaf {
	struct fusee_parquet_column column;
	struct pq_dictionary dictionary;
	uint32_t *codes; /* of all values of the row group, in order of the rows */
	uint64_t n, cap;
	uint32_t group; /* place in `groups` */
	uint64_t ended; /* n at the end of the row before */
};

/* A flat column, or the columns of a map or list. */
struct pq_group {
	uint32_t first, n; /* leaves */
	bool values;       /* a list without structs */
	uint64_t *ends;    /* of a map or list: values up to the end of each row */
	uint64_t cap;
};

#define PQ_METADATA_LAST 13 /* the number of the last field of `metadata` */

/* The metadata of a written column of a row group, in Thrift's bytes, for the end of the file. */
struct pq_chunk {
	struct fusee_bytes metadata; /* to PQ_METADATA_LAST: fields of the filter follow */
	struct fusee_bytes column_index, offset_index, filter; /* filter: none without bytes */
	uint64_t column_index_at, offset_index_at, filter_at;
};

struct pq_row_group {
	struct pq_chunk *chunks; /* one of each leaf */
	uint64_t rows, raw_bytes, bytes;
};

/* The content of a page. */
struct pq_page {
	uint32_t *codes, *repetition, *definition;
	uint64_t ncodes, nlevels, codes_cap, repetition_cap, definition_cap;
};

struct fusee_parquet {
	struct fusee_parquet_options o;
	struct pq_leaf *leaves;
	uint32_t nleaves, ngroups, npairs;
	struct pq_group *groups;
	uint64_t rows, total_rows, at; /* rows of this group; of those written; bytes written */
	struct pq_row_group *row_groups;
	uint64_t nrow_groups, row_groups_cap;
	struct fusee_bytes metadata; /* its pairs, in Thrift's bytes */
	struct fusee_bytes body, stored, header, levels;
	struct pq_page page;
	uint32_t *order; /* rows, in the order of writing */
	int error;
	bool finished;
};

/* output.c: hands bytes to the owner's write(). 0 or -errno. */
int pq_write(struct fusee_parquet *, const struct fusee_bytes *);
/* chunk.c: writes the pages of a column, in w->order. raw: bytes before compression. 0 or -errno.
 */
int pq_write_chunk(struct fusee_parquet *, uint32_t leaf, struct pq_chunk *, uint64_t *raw);
/* footer.c: writes the page index and the footer. 0 or -errno. */
int pq_write_footer(struct fusee_parquet *);
void pq_chunk_fini(struct pq_chunk *);
/* The type of a column in files. */
int pq_physical_type(uint32_t type);
/* The pair of a file's own metadata that has the CRC-32 of the footer, computed with "00000000" as
 * its value: 8 hexadecimal digits. */
#define PQ_CHECKSUM "fusee.footer_crc32"
#endif
