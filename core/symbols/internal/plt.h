/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a PLT's entries: that of the function that an entry jumps to, of another file or chosen
 * at run time, and "@plt". */
#ifndef SYMBOLS_PLT_H
#define SYMBOLS_PLT_H

struct source;
struct symtab;

/* Adds the entries of .plt, .plt.sec, .plt.got and .iplt, after all other functions and before
 * symtab_finish(). An entry that no relocation names is not added. 0 or -ENOMEM. */
int plt_add(struct symtab *, const struct source *);
#endif
