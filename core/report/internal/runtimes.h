/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions are of a language and not of the program that is written in it. */
#ifndef REPORT_RUNTIMES_H
#define REPORT_RUNTIMES_H

#include "report/model.h"

enum render_origin {
	RENDER_OWN,      /* the program's and its libraries' */
	RENDER_STANDARD, /* the standard library's: what the program calls, by its name */
	RENDER_MACHINE,  /* a virtual machine's or an interpreter's, which no program names */
};

enum render_origin render_origin(const struct render_function *);
/* One in which threads of every kind wait, such as runtime.futex: it does not say for what. */
bool render_only_waits(const struct render_function *);
#endif
