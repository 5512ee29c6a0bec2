/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and their callers and callees, trimmed and sorted as pprof does: for --top and --peek.
 */
#ifndef REPORT_GRAPH_H
#define REPORT_GRAPH_H

#include "report/model.h"

/* In a comparison all numbers are the difference from the base. */
struct render_node {
	uint32_t function;
	int64_t flat, cum;
};

struct render_edge {
	uint32_t src, dst; /* functions: caller and callee */
	int64_t weight;
	bool inlined; /* all calls are */
};

struct render_graph {
	const struct render_model *model;
	struct render_node *nodes; /* sorted */
	struct render_edge *edges;
	uint32_t nnodes, nedges;
	uint32_t all;             /* nodes before the limit of rows */
	uint32_t dropped;         /* nodes that were trimmed before */
	int64_t total, shown;     /* 100 %; the sum of flat of the nodes */
	char unit[RENDER_NUMBER]; /* for render_value() */
};

/* trim: drops nodes below half a percent. 0 or -ENOMEM. Borrows the model. */
int render_graph_make(struct render_graph *, const struct render_model *,
		      const struct render_options *, bool trim);
void render_graph_free(struct render_graph *);
void render_graph_value(const struct render_graph *, char out[RENDER_NUMBER], int64_t value);
/* Appends a node's own value, its share, the share of the sum so far, its total and its share. */
void render_graph_values(const struct render_graph *, const struct render_node *, int64_t sum,
			 struct buf *out);
/* The lines above the table. */
void render_graph_header(const struct render_graph *, const struct render_options *,
			 struct buf *out);
/* Names in byte order: <0, 0, >0. */
int render_compare_names(const struct render_model *, uint32_t a, uint32_t b);
#endif
