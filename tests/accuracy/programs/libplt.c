/* SPDX-License-Identifier: Apache-2.0 */
/* Frameless leaves of a library, called through the table. */
long plt_one(long x);
long plt_two(long x);

long plt_one(long x)
{
	return x ^ 0x55;
}

long plt_two(long x)
{
	return x * 3;
}
