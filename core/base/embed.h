/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are part of the program. */
#ifndef BASE_EMBED_H
#define BASE_EMBED_H

/* Declares sym and sym_end: the bytes of the file between them, and a NUL behind. path: a literal,
 * from the top of the tree, or of a folder of the object's -I. */
#define EMBED(sym, path)                                                       \
	__asm__(".pushsection .rodata\n" #sym ":\n.incbin \"" path "\"\n" #sym \
		"_end:\n.byte 0\n.popsection\n");                              \
	extern const char sym[], sym##_end[]

#endif
