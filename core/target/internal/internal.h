/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data and functions that target.c, entry.c, index.c, labels.c and later.c share. Only they
 * include this.
 *
 * An entry is one target of one source. It is in three lists: that of its key (to find the entry
 * again), that of what it matches by (to find the entries that match a process), and that of its
 * source. An entry that is put between targets_begin() and targets_commit() is staged: it is in its
 * lists, so that the commit needs no memory and cannot fail, but no lookup returns it.
 *
 * target.c and labels.c call entry.c and index.c, and all call labelset.c; target.c calls later.c.
 */
#ifndef TARGET_INTERNAL_H
#define TARGET_INTERNAL_H

#include "base/buf.h"
#include "base/dict.h"
#include "base/hashmap.h"
#include "target/labelset.h"
#include "target/target.h"

enum {
	TARGET_MAX = 200000,       /* entries, staged or not */
	TARGET_MAX_KEY = 4096,     /* bytes of a key or of a path */
	TARGET_MAX_CHANGED = 1024, /* pids remembered for targets_changes() */
	TARGET_TEXTS = 48 << 20    /* bytes of label texts */
};

enum target_list_kind { BY_KEY, BY_MATCH, BY_SOURCE, LISTS };

struct target_list {
	struct target_entry *first;
	struct hashmap *in; /* the map that holds the list under `hash`; NULL: in no map */
	uint64_t hash;
};

struct target_entry {
	struct target_list *lists[LISTS];
	struct target_entry *next[LISTS], *prev[LISTS];
	struct target_source *source;
	bool staged;
	bool lacks;       /* labels that its source has named as `later` */
	uint64_t process; /* identity of the process that it matched first; 0: none yet */
	uint32_t uid;     /* the user who chose the label texts */
	uint32_t bytes;   /* of that user's budget */
	uint64_t round;   /* the source's round in which the entry was last put; 0: deleted in it */
	struct fusee_target t;
	struct fusee_label labels[]; /* t.labels; the texts follow */
};

struct target_source {
	uint32_t id;
	uint32_t live;  /* entries that are not staged */
	bool open;      /* between begin and commit */
	bool synced;    /* committed once */
	uint64_t round; /* calls of targets_begin() */
	struct target_list entries;
};

/* What labels that come later may change. Nothing is removed from it. */
struct target_later {
	struct dict names; /* of these labels */
	struct dict keys;  /* names of labels that targets match by */
	bool joins;        /* a target matches by one of `names`, or by what follows from them */
};

struct targets {
	struct hashmap keys, matches; /* struct target_list, by hash */
	struct hashmap sources;       /* struct target_source, by id */
	struct labelsets sets;
	struct user_budget texts; /* of labels, in entries and sets */
	bool refused;             /* a set was refused because label texts take too much memory */
	uint64_t generation;
	pid_t changed[TARGET_MAX_CHANGED]; /* since the last targets_changes() */
	uint32_t nchanged;
	bool all_changed;      /* more than `changed` holds, or by other means than a pid */
	uint32_t live, staged; /* entries */
	char host[LABELSET_VALUE_MAX + 1], kernel[LABELSET_VALUE_MAX + 1];
	const struct target_labels *selected; /* borrowed; NULL: none */
	struct buf text;                      /* scratch of targets_put() and targets_labels() */
	struct target_entry **found;          /* scratch of targets_labels() */
	struct target_later later;
	size_t nfound, cap;
	struct target_recent {
		pid_t pid;
		uint32_t uid;
		uint64_t until;
	} recent; /* whose user was looked up last */
};

/* index.c */
/* The source's entry of that key, staged or not. NULL: none. */
struct target_entry *target_entry_find(const struct targets *, const struct target_source *,
				       struct fusee_str key, bool staged);
/* Adds the entry, which must have its source, to its lists, and frees `old` (NULL: none).
 * -ENOMEM: nothing is changed. */
int target_entry_insert(struct targets *, struct target_entry *, struct target_entry *old);
/* Removes the entry from its lists and frees it. */
void target_entry_free(struct targets *, struct target_entry *);
/* Makes a staged entry visible. */
void target_entry_publish(struct targets *, struct target_entry *);
/* The entries with the hash of what `like` matches by. Different texts can have equal hashes. */
const struct target_list *target_matches(const struct targets *, const struct fusee_target *like);

/* entry.c */
/* Copies what a plugin handed in, which may be of an older or newer ABI, to *t and checks it.
 * -EINVAL: *why is static text. */
int target_check(const struct fusee_target *given, struct fusee_target *t, const char **why);
/* A copy that owns its texts, in no list. NULL: no memory. */
struct target_entry *target_entry_new(struct targets *, const struct fusee_target *);
/* Equal match and labels; the key is not compared. */
bool target_entry_equal(const struct target_entry *, const struct target_entry *);
void target_count_dropped_labels(uint32_t n);
/* Notes the names in t->later, or that it matches by a label. 0 or -ENOMEM. */
int target_note_later(struct targets *, const struct fusee_target *t);
/* The user who chose the texts: of the process, or, without a pid, root. What was looked up for a
 * process last is used for 100 ms. */
uint32_t target_user(struct targets *, pid_t pid);
/* Whether more texts of the user may be kept. Counts a refusal. what: "target", "process". */
bool target_texts_have_room(const struct targets *, uint32_t uid, const char *what);
#endif
