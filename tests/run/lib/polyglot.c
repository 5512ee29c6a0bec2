/* SPDX-License-Identifier: Apache-2.0 */
/*
 * polyglot SECONDS: Python, Ruby and Lua in one thread. Each calls the next through C: py_level()
 * calls the C function call_ruby(), which calls Object#rb_level; that calls Object#to_lua, which is
 * implemented in C and by call_lua() calls lua_level(); that calls py_level() by call_python().
 * Three times around; what is innermost is work of one of the three.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <ruby.h>
#include <time.h>

#define LEVEL static __attribute__((noinline, noipa))

static PyObject *py_level;
static lua_State *lua;

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* n: the calls to come, of all languages. Calls are no tail calls: each returns what the next does,
 * + 1. */
LEVEL long call_ruby(long n)
{
	return 1 + NUM2LONG(rb_funcall(Qnil, rb_intern("rb_level"), 1, LONG2NUM(n)));
}

LEVEL long call_lua(long n)
{
	long r;

	lua_getglobal(lua, "lua_level");
	lua_pushinteger(lua, n);
	lua_call(lua, 1, 1);
	r = (long)lua_tointeger(lua, -1);
	lua_pop(lua, 1);
	return 1 + r;
}

LEVEL long call_python(long n)
{
	PyObject *r = PyObject_CallFunction(py_level, "l", n);
	long v = r ? PyLong_AsLong(r) : -1;

	Py_XDECREF(r);
	return 1 + v;
}

static PyObject *from_python(PyObject *self, PyObject *n)
{
	(void)self;
	return PyLong_FromLong(call_ruby(PyLong_AsLong(n)));
}

static VALUE from_ruby(VALUE self, VALUE n)
{
	(void)self;
	return LONG2NUM(call_lua(NUM2LONG(n)));
}

static int from_lua(lua_State *l)
{
	lua_pushinteger(l, call_python((long)luaL_checkinteger(l, 1)));
	return 1;
}

static const char python_text[] = "def py_work(n):\n"
				  "    x = 0\n"
				  "    for i in range(n):\n"
				  "        x += i % 7\n"
				  "    return x\n"
				  "def py_level(n):\n"
				  "    r = to_ruby(n - 1) if n else py_work(20000)\n"
				  "    return r\n";
static const char ruby_text[] = "def rb_work(n)\n"
				"  x = 0\n"
				"  i = 0\n"
				"  while i < n\n"
				"    x += i % 7\n"
				"    i += 1\n"
				"  end\n"
				"  x\n"
				"end\n"
				"def rb_level(n)\n"
				"  r = n > 0 ? to_lua(n - 1) : rb_work(20000)\n"
				"  r\n"
				"end\n";
static const char lua_text[] = "local function lua_work(n)\n"
			       "  local x = 0\n"
			       "  for i = 1, n do x = x + i % 7 end\n"
			       "  return x\n"
			       "end\n"
			       "function lua_level(n)\n"
			       "  local r\n"
			       "  if n > 0 then r = to_python(n - 1) else r = lua_work(50000) end\n"
			       "  return r\n"
			       "end\n";

static void begin_python(void)
{
	static PyMethodDef to_ruby = {"to_ruby", from_python, METH_O, NULL};
	PyObject *code, *globals;

	Py_Initialize();
	globals = PyModule_GetDict(PyImport_AddModule("__main__"));
	PyDict_SetItemString(globals, "to_ruby", PyCFunction_New(&to_ruby, NULL));
	code = Py_CompileString(python_text, "levels.py", Py_file_input);
	if (!code || !PyEval_EvalCode(code, globals, globals))
		exit(1);
	py_level = PyDict_GetItemString(globals, "py_level");
}

static void begin_ruby(void)
{
	VALUE args[2];

	ruby_init();
	rb_define_global_function("to_lua", from_ruby, 1);
	args[0] = rb_str_new_cstr(ruby_text);
	args[1] = rb_str_new_cstr("levels.rb");
	rb_funcall(rb_const_get(rb_cObject, rb_intern("TOPLEVEL_BINDING")), rb_intern("eval"), 2,
		   args[0], args[1]);
}

int main(int argc, char **argv)
{
	double end = argc > 1 ? atof(argv[1]) : 1;
	RUBY_INIT_STACK;

	begin_python();
	begin_ruby();
	lua = luaL_newstate();
	luaL_openlibs(lua);
	lua_register(lua, "to_python", from_lua);
	if (luaL_loadbuffer(lua, lua_text, sizeof(lua_text) - 1, "@levels.lua") ||
	    lua_pcall(lua, 0, 0, 0))
		return 1;
	for (end += cpu(); cpu() < end;)
		for (long n = 6; n <= 8; n++)
			if (call_python(n) < 1)
				return 1;
	return 0;
}
