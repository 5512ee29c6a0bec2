/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts of the versions of CRuby. */
#ifndef RUBY_VERSIONS_H
#define RUBY_VERSIONS_H

#include <stdint.h>

#include "words.h"

/* Fills the words of a version's structs: `text` is what RUBY_VERSION is in Ruby. 0, or -ENOTSUP:
 * the version is not known. */
int ruby_version_words(const char *text, uint32_t words[RUBY_WORDS]);

/* Releases that the tests have run. */
extern const char ruby_tested[];

#endif
