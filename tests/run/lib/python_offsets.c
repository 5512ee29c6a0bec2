/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the offsets that the python unwinder uses, by the headers of the Python that it is
 * compiled against. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#else
#include <frameobject.h>
#include <internal/pycore_pystate.h>
#if PY_VERSION_HEX >= 0x03090000
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#endif
#endif

#define SHOW(name, T, field) printf("%s %zu\n", name, offsetof(T, field))

static void show_old(void)
{
#if PY_VERSION_HEX < 0x030b0000
	SHOW("next", struct _is, next);
	SHOW("threads", struct _is, tstate_head);
	SHOW("current", PyThreadState, frame);
	SHOW("frame", struct _frame, f_lasti);
	SHOW("holder", _PyRuntimeState, gilstate.tstate_current);
	SHOW("f_back", struct _frame, f_back);
	SHOW("f_code", struct _frame, f_code);
#if PY_VERSION_HEX >= 0x030a0000
	SHOW("table", PyCodeObject, co_linetable);
#else
	SHOW("table", PyCodeObject, co_lnotab);
#endif
#endif
}

static void show_new(void)
{
#if PY_VERSION_HEX >= 0x030b0000
	SHOW("next", PyInterpreterState, next);
	SHOW("threads", PyInterpreterState, threads.head);
	SHOW("previous", struct _PyInterpreterFrame, previous);
	SHOW("qualname", PyCodeObject, co_qualname);
	SHOW("table", PyCodeObject, co_linetable);
	SHOW("bytecode", PyCodeObject, co_code_adaptive);
#if PY_VERSION_HEX >= 0x030d0000
	SHOW("current", PyThreadState, current_frame);
	SHOW("main", _PyRuntimeState, interpreters.main);
#if PY_VERSION_HEX >= 0x030e0000
	SHOW("generation", PyInterpreterState, _code_object_generation);
#ifdef Py_GIL_DISABLED
	SHOW("copies", PyCodeObject, co_tlbc);
	SHOW("copy", struct _PyInterpreterFrame, tlbc_index);
#endif
#endif
	SHOW("executable", struct _PyInterpreterFrame, f_executable);
	SHOW("instruction", struct _PyInterpreterFrame, instr_ptr);
	SHOW("owner", struct _PyInterpreterFrame, owner);
#else
	SHOW("current", PyThreadState, cframe);
	SHOW("cframe", _PyCFrame, current_frame);
	SHOW("executable", struct _PyInterpreterFrame, f_code);
	SHOW("instruction", struct _PyInterpreterFrame, prev_instr);
#if PY_VERSION_HEX >= 0x030c0000
	SHOW("owner", struct _PyInterpreterFrame, owner);
#else
	SHOW("owner", struct _PyInterpreterFrame, is_entry);
#endif
#endif
#endif
}

/* The first bit of what a str's state has as bytes of a character. */
static int bit_of_kind(void)
{
	static PyASCIIObject text;
	unsigned int state;

	text.state.kind = 1;
	memcpy(&state, &text.state, sizeof(state));
	return __builtin_ctz(state);
}

int main(void)
{
	printf("version %u\n", PY_VERSION_HEX);
#if PY_VERSION_HEX < 0x030c0000
	SHOW("key", _PyRuntimeState, gilstate.autoTSSkey);
#else
	SHOW("key", _PyRuntimeState, autoTSSkey);
#endif
	SHOW("interpreters", _PyRuntimeState, interpreters.head);
	show_old();
	show_new();
	printf("kind %d\n", bit_of_kind());
	printf("header %zu\n", sizeof(PyObject) - 16);
	SHOW("thread_next", PyThreadState, next);
	SHOW("thread_id", PyThreadState, thread_id);
	SHOW("filename", PyCodeObject, co_filename);
	SHOW("name", PyCodeObject, co_name);
	SHOW("line", PyCodeObject, co_firstlineno);
	printf("ascii %zu\ncompact %zu\n", sizeof(PyASCIIObject), sizeof(PyCompactUnicodeObject));
	SHOW("length", PyASCIIObject, length);
	SHOW("state", PyASCIIObject, state);
	SHOW("bytes", PyBytesObject, ob_sval);
	return 0;
}
