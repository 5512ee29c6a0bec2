/* SPDX-License-Identifier: Apache-2.0 */
/* Hides users and passwords in texts that people and other programs read. All write in place, and
 * never make a text longer. A password may have any character, also those that a URL must encode:
 * what is hidden goes to the last '@' of its word, or of the quotes around it. [any thread] */
#ifndef BASE_CREDENTIALS_H
#define BASE_CREDENTIALS_H

#include <stdbool.h>

/* In any sentence: what is between "://" and '@' becomes three stars. */
void credentials_hide(char *text);
/* In a sentence about options: also in quotes 'user:secret@host', and what follows '?' or '#' of a
 * URL, where servers take keys. */
void credentials_hide_quoted(char *text);
/* The same in an address that has no quotes. */
void credentials_hide_value(char *address);
/* The same in the value of an option, if it is an address: by "://", or by the option's name. Paths
 * and s3://NAME/PREFIX stay. */
void credentials_hide_option(const char *option, char *value);
/* Whether the value of a header or parameter of this name is likely a secret. */
bool credentials_are_named(const char *name);
#endif
