/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions without a description to which described code leads: init functions of libraries write
 * tables of pointers to hand-written functions, whose names are stripped.
 */
#ifndef DWARF_CODE_REFS_H
#define DWARF_CODE_REFS_H

#include "code.h"

/* Adds where calls, jumps and lea n(%rip) of described code (text->known) seem to lead, if that is
 * in one of the stretches (sorted pairs of addresses). They are found by their bytes, so there is
 * no instruction at some. 0, -ENOMEM. */
int code_refs_add(const struct code *text, const struct code_entries *stretches,
		  struct code_entries *maybe);
#endif
