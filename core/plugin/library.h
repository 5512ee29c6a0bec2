/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries of the machine that are loaded only when needed. They stay loaded. */
#ifndef PLUGIN_LIBRARY_H
#define PLUGIN_LIBRARY_H

/* Loads the library of this soname. NULL: it is not installed, or cannot be loaded. [any thread] */
void *library_load(const char *soname);
/* A function of the library; NULL: there is no function of this name. [any thread] */
void *library_function(void *library, const char *name);
#endif
