/* SPDX-License-Identifier: Apache-2.0 */
/* The library that probed.c loads. */
__attribute__((noinline, visibility("default"))) void hit_library(void)
{
	__asm__ volatile("" ::: "memory");
}

void call_library(int n);
void call_library(int n)
{
	for (int i = 0; i < n; i++)
		hit_library();
	__asm__ volatile("" ::: "memory");
}
