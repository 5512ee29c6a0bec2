/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * asyncio: the tasks that await the task that runs. The event loop calls the running task's
 * * coroutine from Handle._run(), whose callback has the task. A task has callbacks for its end: a
 * callback that wakes up a task that awaits it, or a callback of asyncio, by which gather(), wait()
 * and others await several tasks. A link is used only if both sides have it: the task's coroutine
 * is running, and the _fut_waiter of a task that awaits is the awaited future. A part of the step:
 * python.bpf.c includes it.
 */
#ifndef PYTHON_TASKS_H
#define PYTHON_TASKS_H

#define FUTURES 8u           /* between two tasks */
#define CALLBACKS 8u         /* of one of them that are looked at */
#define TASKS 64u            /* that await each other */
#define WORK_OF_A_STACK 512u /* callbacks and coroutines that are looked at in all its C frames */
#define CELLS 8u             /* of a function that are looked at */
#define FRAME_WORDS (FRAME_BYTES / 8)
#define ATTRIBUTES 16  /* of a TaskGroup that are looked at */
#define SET_BY_INIT 10 /* of these, in 3.11 and 3.12, by its __init__() */

/* Offsets in objects, the same in 3.11 to 3.14. */
enum {
	TYPE = 8,
	TYPE_NAME = 24,
	TYPE_SIZE = 32,  /* of an object of it */
	SIZE = 16,       /* of a tuple or list */
	LIST_ITEMS = 24, /* address of those of a list; it follows the size */
	HANDLE_CALLBACK = 24,
	STEP_TASK = 16, /* in what makes the first step of a task */
	BUILTIN_SELF = 24,
	METHOD_SELF = 24,
	FUNCTION_CODE = 48,
	FUNCTION_CLOSURE = 72,
	CELL_CONTENTS = 16,
	PARTIAL_FUNCTION = 16,
	PARTIAL_ARGUMENTS = 24,
	WRAPPED = 16, /* coroutine of a coroutine's wrapper, or of what iterates over it */
	FUTURE_CALLBACK = 24,
	FUTURE_CALLBACKS = 40,
};

/* What an object is, by its type's name. */
enum python_kind {
	KIND_OTHER,
	KIND_TASK,
	KIND_FUTURE,
	KIND_COROUTINE, /* or generator, which has the same beginning */
	KIND_WRAPPER,
	KIND_BUILTIN,
	KIND_FUNCTION,
	KIND_METHOD,
	KIND_PARTIAL,
	KIND_GROUP,
	KIND_HANDLE,
	KIND_STEP,
};

#define TOO_MANY (-2) /* -1: memory that cannot be read */

/* The first 8 characters as a number, as they are read from memory. */
#define LETTERS(s)                                                                        \
	((__u64)(s)[0] | (__u64)(s)[1] << 8 | (__u64)(s)[2] << 16 | (__u64)(s)[3] << 24 | \
	 (__u64)(s)[4] << 32 | (__u64)(s)[5] << 40 | (__u64)(s)[6] << 48 | (__u64)(s)[7] << 56)

FUSEE_FN int kind_by_name(__u64 a, __u64 b)
{
	if (a == LETTERS("_asyncio"))
		return b == LETTERS(".Task\0\0\0") ? KIND_TASK
		       : b == LETTERS(".Future\0") ? KIND_FUTURE
		       : b == LETTERS(".TaskSte")  ? KIND_STEP
						   : KIND_OTHER;
	if (a == LETTERS("_Gatheri") && b == LETTERS("ngFuture"))
		return KIND_FUTURE;
	if (a == LETTERS("coroutin"))
		return b == LETTERS("e\0\0\0\0\0\0\0") ? KIND_COROUTINE
		       : b == LETTERS("e_wrappe")      ? KIND_WRAPPER
						       : KIND_OTHER;
	if (a == LETTERS("generato") && b == LETTERS("r\0\0\0\0\0\0\0"))
		return KIND_COROUTINE;
	if (a == LETTERS("async_ge"))
		return b == LETTERS("nerator\0")  ? KIND_COROUTINE
		       : b == LETTERS("nerator_") ? KIND_WRAPPER
						  : KIND_OTHER;
	if (a == LETTERS("builtin_") && b == LETTERS("function"))
		return KIND_BUILTIN;
	if (a == LETTERS("function") && !b)
		return KIND_FUNCTION;
	if (a == LETTERS("Handle\0\0") ||
	    (a == LETTERS("TimerHan") && b == LETTERS("dle\0\0\0\0\0")))
		return KIND_HANDLE;
	if (a == LETTERS("TaskStep") && b == LETTERS("MethWrap"))
		return KIND_STEP;
	if (a == LETTERS("method\0\0"))
		return KIND_METHOD;
	if (a == LETTERS("functool") && b == LETTERS("s.partia"))
		return KIND_PARTIAL;
	if (a == LETTERS("TaskGrou") && b == LETTERS("p\0\0\0\0\0\0\0"))
		return KIND_GROUP;
	return KIND_OTHER;
}

/* The kind of the object at WORK, or -1. */
static int kind_of(struct fusee_unwind *u, __u32 unused)
{
	__u64 object = u->scratch[WORK], type, name;
	struct near *n = near(u);

	(void)unused;
	if (!n || !object || object & 7)
		return KIND_OTHER;
	n->text[0] = n->text[1] = 0;
	if (AT(u, &type, object + TYPE) || AT(u, &name, type + TYPE_NAME) ||
	    fusee_read_str(u, (char *)n->text, 17, name) < 0)
		return -1;
	return kind_by_name(n->text[0], n->text[1]);
}
FUSEE_PART(fusee_python_kind_of, kind_of)

FUSEE_FN int kind(struct fusee_unwind *u, __u64 object)
{
	u->scratch[WORK] = object;
	return FUSEE_CALL(fusee_python_kind_of, u, 0);
}

/* _fut_waiter, and behind it the coroutine, in a task. */
FUSEE_FN __u32 waiter(const struct near *n)
{
	return n->table[PYTHON_TASKS] & 0xffff;
}

/* From the beginning of a coroutine to its frame. */
FUSEE_FN __u32 to_frame(const struct near *n)
{
	return n->table[PYTHON_TASKS] >> 16;
}

FUSEE_FN __u32 minor(const struct near *n)
{
	return n->table[PYTHON_VERSION] >> 8;
}

/* From the beginning of a tuple to its items. */
FUSEE_FN __u32 to_items(const struct near *n)
{
	return minor(n) >= 14 ? 32 : 24;
}

/* Reads memory into n->word, which takes no stack. 0 or -1. */
FUSEE_FN int read_words(struct fusee_unwind *u, struct near *n, __u32 words, __u64 at)
{
	n->bytes = 0; /* no frames are there now */
	return fusee_read(u, n->word, 8 * words, at);
}

/* Whether one more callback or coroutine may be read: a malicious process must not keep the CPU
 * busy.
 */
FUSEE_FN int more_work(struct fusee_unwind *u)
{
	u->scratch[PLACED] += 256;
	return u->scratch[PLACED] >> 8 <= WORK_OF_A_STACK;
}

/* ---- from a future to what awaits it ---- */

/* Whether `task` is a task that awaits `future`: 1, 0 or -1. */
FUSEE_FN int is_awaiting(struct fusee_unwind *u, const struct near *n, __u64 task, __u64 future)
{
	__u64 awaited;
	int k = kind(u, task);

	if (k != KIND_TASK)
		return k < 0 ? -1 : 0;
	if (AT(u, &awaited, task + waiter(n)))
		return -1;
	return awaited == future;
}

enum python_own { OWN_NONE, OWN_CLOSURE, OWN_RELEASE };

/* Whether the function is of asyncio and sets the result of a future: enum python_own, or -1. */
FUSEE_FN int is_own_callback(struct fusee_unwind *u, struct near *n, __u64 function)
{
	__u64 code, texts[3], length, *file = n->text, *name = n->text + 2;
	__u32 header = n->table[PYTHON_TEXT] & 0xffff;

	if (AT(u, &code, function + FUNCTION_CODE) ||
	    AT(u, &texts, code + n->table[PYTHON_CODE] + 8 * PYTHON_NEW_FILENAME) ||
	    AT(u, &length, texts[0] + 16))
		return -1;
	if (length < 16 || length > 4096)
		return OWN_NONE;
	if (fusee_read(u, file, 16, texts[0] + header + length - 16) ||
	    fusee_read(u, name, 24, texts[2] + header))
		return -1;
	if (file[0] != LETTERS("asyncio/") || file[1] != LETTERS("tasks.py"))
		return OWN_NONE;
	if (name[0] == LETTERS("_release") && name[1] == LETTERS("_waiter\0"))
		return OWN_RELEASE;
	return (name[0] == LETTERS("gather.<") && name[2] == LETTERS("_done_ca")) ||
			       (name[0] == LETTERS("shield.<") && name[2] == LETTERS("_inner_d")) ||
			       (name[0] == LETTERS("_wait.<l") && name[2] == LETTERS("on_compl"))
		       ? OWN_CLOSURE
		       : OWN_NONE;
}

/* NEXT becomes the future among the variables that a function has from where it was defined. Its
 * kind, or KIND_OTHER, or -1. */
FUSEE_FN int future_of_closure(struct fusee_unwind *u, const struct near *n, __u64 function)
{
	__u64 closure, size, cell, object;
	int k;

	if (AT(u, &closure, function + FUNCTION_CLOSURE) || AT(u, &size, closure + SIZE))
		return -1;
	for (__u32 i = 0; i < CELLS && i < size; i++) {
		if (AT(u, &cell, closure + to_items(n) + 8 * i) ||
		    AT(u, &object, cell + CELL_CONTENTS))
			return -1;
		k = kind(u, object);
		u->scratch[NEXT] = object;
		if (k < 0 || k == KIND_FUTURE)
			return k;
	}
	return KIND_OTHER;
}

/* The same of the first argument that functools.partial() was given. */
FUSEE_FN int future_of_partial(struct fusee_unwind *u, struct near *n, __u64 partial)
{
	__u64 function, arguments, size, object = 0;
	int k;

	if (AT(u, &function, partial + PARTIAL_FUNCTION) ||
	    AT(u, &arguments, partial + PARTIAL_ARGUMENTS) || AT(u, &size, arguments + SIZE))
		return -1;
	k = kind(u, function);
	if (k == KIND_FUNCTION) {
		k = is_own_callback(u, n, function);
		if (k == OWN_RELEASE && size)
			k = AT(u, &object, arguments + to_items(n)) ? -1 : KIND_FUNCTION;
		else
			k = k < 0 ? -1 : KIND_OTHER;
	}
	if (k != KIND_FUNCTION)
		return k < 0 ? -1 : KIND_OTHER;
	k = kind(u, object);
	u->scratch[NEXT] = object;
	return k == KIND_FUTURE || k < 0 ? k : KIND_OTHER;
}

/* The address of the values of an object's attributes; 0: they are in a dict. Their number, or -1.
 */
FUSEE_FN int values_of(struct fusee_unwind *u, const struct near *n, __u64 object, __u64 *values)
{
	__u64 w, type, size;

	*values = 0;
	if (minor(n) == 11)
		return AT(u, values, object - 32) ? -1 : SET_BY_INIT;
	if (minor(n) == 12) {
		if (AT(u, &w, object - 24))
			return -1;
		*values = w & 1 ? w + 1 : 0;
		return SET_BY_INIT;
	}
	/* behind the object: bytes (capacity, size, is it in the object, is it used), and values */
	if (AT(u, &type, object + TYPE) || AT(u, &size, type + TYPE_SIZE) || size > 4096 ||
	    AT(u, &w, object + size))
		return -1;
	*values = w >> 24 & 255 ? object + size + 8 : 0;
	return (int)(w & 255);
}

/* NEXT becomes the task that a TaskGroup belongs to, if that awaits the group's own future:
 * KIND_TASK. Or KIND_OTHER, or -1. */
FUSEE_FN int task_of_group(struct fusee_unwind *u, struct near *n, __u64 group)
{
	__u64 values, awaited, task = 0;
	int k = KIND_OTHER, size = values_of(u, n, group, &values);

	if (size < 0 || !values)
		return size < 0 ? -1 : KIND_OTHER;
	if (read_words(u, n, ATTRIBUTES, values))
		return -1;
	for (int i = 0; i < ATTRIBUTES && i < size && k != KIND_TASK; i++) {
		task = n->word[i];
		k = kind(u, task);
		if (k < 0)
			return -1;
	}
	if (k != KIND_TASK)
		return KIND_OTHER;
	if (AT(u, &awaited, task + waiter(n)))
		return -1;
	u->scratch[NEXT] = task;
	for (int i = 0; i < ATTRIBUTES && i < size; i++)
		if (awaited && n->word[i] == awaited)
			return KIND_TASK;
	return KIND_OTHER;
}

/* NEXT, a callback of the future n->future, becomes the task that it wakes up, or the future whose
 * result it sets: KIND_TASK, KIND_FUTURE, or KIND_OTHER, or -1. */
static int resolve(struct fusee_unwind *u, __u32 unused)
{
	__u64 callback = u->scratch[NEXT], self;
	struct near *n = near(u);
	int k = kind(u, callback);

	(void)unused;
	if (!n || k < 0)
		return -1;
	if (k == KIND_BUILTIN || k == KIND_METHOD) {
		if (AT(u, &self, callback + (k == KIND_BUILTIN ? BUILTIN_SELF : METHOD_SELF)))
			return -1;
		u->scratch[NEXT] = self;
		if (k == KIND_BUILTIN)
			return is_awaiting(u, n, self, n->future); /* KIND_TASK is 1 */
		k = kind(u, self);
		return k == KIND_GROUP ? task_of_group(u, n, self) : k < 0 ? -1 : KIND_OTHER;
	}
	if (k == KIND_PARTIAL)
		return future_of_partial(u, n, callback);
	if (k != KIND_FUNCTION)
		return KIND_OTHER;
	k = is_own_callback(u, n, callback);
	return k == OWN_CLOSURE ? future_of_closure(u, n, callback) : k < 0 ? -1 : KIND_OTHER;
}
FUSEE_PART(fusee_python_resolve, resolve)

/* NEXT becomes callback i of a future. 1; 0: there are no more; -1. */
FUSEE_FN int callback(struct fusee_unwind *u, const struct near *n, __u32 i)
{
	__u64 list, l[2], pair; /* l: its size, the address of its items */

	if (!i)
		return AT(u, &u->scratch[NEXT], n->future + FUTURE_CALLBACK) ? -1 : 1;
	if (AT(u, &list, n->future + FUTURE_CALLBACKS))
		return -1;
	if (!list)
		return 0;
	if (AT(u, &l, list + SIZE))
		return -1;
	if (i > l[0])
		return 0;
	return AT(u, &pair, l[1] + 8ull * (i - 1)) || AT(u, &u->scratch[NEXT], pair + to_items(n))
		       ? -1
		       : 1;
}

/* n->future becomes what awaits it. KIND_TASK, KIND_FUTURE, or KIND_OTHER: nothing does; -1 or
 * TOO_MANY. */
static int find_next(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__u64 found = 0;
	int r = KIND_OTHER;

	(void)unused;
	if (!n)
		return -1;
	for (__u32 i = 0; i < CALLBACKS && r != KIND_TASK; i++) {
		r = callback(u, n, i);
		if (r <= 0)
			break;
		r = more_work(u) ? FUSEE_CALL(fusee_python_resolve, u, 0) : TOO_MANY;
		if (r < 0)
			break;
		if (r == KIND_TASK || (r == KIND_FUTURE && !found))
			found = u->scratch[NEXT];
	}
	if (r < 0 || !found)
		return r < 0 ? r : KIND_OTHER;
	n->future = found;
	return r == KIND_TASK ? KIND_TASK : KIND_FUTURE;
}

/* n->future becomes the task that awaits it. 1; 0: none does; -1 or TOO_MANY. */
static int find_awaiting(struct fusee_unwind *u, __u32 unused)
{
	int r = KIND_FUTURE;

	(void)unused;
	for (__u32 i = 0; i < FUTURES && r == KIND_FUTURE; i++)
		r = find_next(u, 0);
	return r == KIND_TASK ? 1 : r == KIND_FUTURE ? TOO_MANY : r;
}
FUSEE_PART(fusee_python_find_awaiting, find_awaiting)

/* ---- the coroutines of a task that awaits ---- */

/* Whether the frame's coroutine is at an await, so that the top of its stack is the awaited object:
 * 1, 0 or -1. state: of the coroutine, which shows it from 3.13 on. */
FUSEE_FN int is_at_await(struct fusee_unwind *u, const struct near *n, __u64 instruction,
			 __u8 state)
{
	__u8 argument; /* of the instruction that it goes on with: 2 and 3 are awaits */

	if (minor(n) >= 13)
		return state == 255;
	return AT(u, &argument, instruction + 3) ? -1 : argument >= 2;
}

/* What a coroutine awaits, or 0. 0 or -1. */
FUSEE_FN int awaited_by(struct fusee_unwind *u, struct near *n, __u64 coroutine, __u64 *awaited)
{
	__u64 frame = coroutine + to_frame(n), top;
	__u8 state;
	int r;

	*awaited = 0;
	if (read_words(u, n, FRAME_WORDS, frame) || AT(u, &state, frame - 5) || state < 254)
		return -1; /* it runs */
	r = is_at_await(u, n, n->word[7], state);
	if (r <= 0)
		return r;
	top = minor(n) >= 14 ? n->word[8] - 8 : frame + 72 + 8ull * ((__u32)n->word[8] - 1);
	if (AT(u, awaited, top))
		return -1;
	*awaited &= ~1ull;
	return 0;
}

/* n->coroutine becomes those of the task n->future, outermost first. 1, -1 or TOO_MANY. */
static int find_coroutines(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__u64 object;

	(void)unused;
	if (!n || AT(u, &object, n->future + waiter(n) + 8))
		return -1;
	n->ncoroutines = 0;
	for (__u32 i = 0; i < COROUTINES; i++) {
		int k = kind(u, object);

		if (k < 0 || !more_work(u))
			return k < 0 ? -1 : TOO_MANY;
		if (k == KIND_WRAPPER) {
			if (AT(u, &object, object + WRAPPED))
				return -1;
		} else if (k != KIND_COROUTINE) {
			return n->ncoroutines ? 1 : -1;
		} else {
			n->coroutine[n->ncoroutines++ & (COROUTINES - 1)] = object;
			if (awaited_by(u, n, object, &object))
				return -1;
		}
	}
	return TOO_MANY;
}
FUSEE_PART(fusee_python_find_coroutines, find_coroutines)

/* The task that awaits n->future, and its coroutines. 1; 0: there is none; -1 or TOO_MANY. */
FUSEE_FN int next_task(struct fusee_unwind *u, struct near *n)
{
	int r = FUSEE_CALL(fusee_python_find_awaiting, u, 0);

	(void)u; /* calls in the kernel do not pass it */
	if (r == 1)
		r = n->tasks++ < TASKS ? FUSEE_CALL(fusee_python_find_coroutines, u, 0) : TOO_MANY;
	if (r <= 0)
		n->future = 0;
	return r;
}

/* ---- the running task ---- */

/*
 * n->future becomes the task whose coroutine has the frame FRAME; NEXT is the frame below it, of
 * Handle._run(). 1; 0: it is none; -1. The first local of another function may be anything, so what
 * cannot be read there is no Handle.
 */
FUSEE_FN int running_task(struct fusee_unwind *u, struct near *n)
{
	__u64 self, callback, task, coroutine;
	int k;

	if (AT(u, &self, u->scratch[NEXT] + (minor(n) >= 14 ? 80 : 72)))
		return 0;
	self &= ~1ull;
	if (kind(u, self) != KIND_HANDLE)
		return 0;
	if (AT(u, &callback, self + HANDLE_CALLBACK))
		return -1;
	k = kind(u, callback);
	if (k != KIND_BUILTIN && k != KIND_STEP)
		return k < 0 ? -1 : 0;
	if (AT(u, &task, callback + (k == KIND_BUILTIN ? BUILTIN_SELF : STEP_TASK)))
		return -1;
	k = kind(u, task);
	if (k != KIND_TASK)
		return k < 0 ? -1 : 0;
	if (AT(u, &coroutine, task + waiter(n) + 8))
		return -1;
	n->future = task;
	return coroutine + to_frame(n) == u->scratch[FRAME];
}

/* FRAME is a coroutine's, NEXT the frame below it. Is it a task's? 1: n->future is the task; 0: no.
 */
static int find_task(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	int r;

	(void)unused;
	if (!n)
		return 0;
	n->future = n->tasks = n->ncoroutines = 0;
	if (n->table[PYTHON_FAMILY] != PYTHON_ENTRIES) {
		/* a frame on the C stack is between them */
		if (read_words(u, n, FRAME_WORDS, u->scratch[NEXT]) || !is_last(n, n->word))
			return 0;
		u->scratch[NEXT] = n->word[1];
	}
	r = running_task(u, n);
	if (r != 1)
		n->future = 0;
	return r;
}
FUSEE_PART(fusee_python_find_task, find_task)

FUSEE_FN int stop_in_tasks(struct fusee_unwind *u, int r)
{
	return fusee_stop(u, r == TOO_MANY ? PYTHON_MANY_TASKS : PYTHON_TASKS_UNREADABLE);
}

/* Pushes the next coroutine of n->coroutine. 0 or -1. */
static int push_coroutine(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__u64 code;
	__u32 i;

	(void)unused;
	if (!n)
		return -1;
	i = --n->ncoroutines;
	__asm__ volatile("" : "+r"(i));
	if (read_words(u, n, FRAME_WORDS, n->coroutine[i & (COROUTINES - 1)] + to_frame(n)))
		return -1;
	code = code_of(n, n->word);
	return push_function(u, n, code, n->word[7] - code - n->table[PYTHON_BYTECODE],
			     FUSEE_PUSH_ASYNC);
}
FUSEE_PART(fusee_python_push_coroutine, push_coroutine)

/* Pushes the next coroutine that awaits what was pushed. The parts are called here, since the
 * kernel bounds the stack of a chain of calls. */
FUSEE_FN int push_awaiting(struct fusee_unwind *u, struct near *n)
{
	int r = n->ncoroutines ? 1 : next_task(u, n);

	if (!r)
		return (int)n->then;
	if (r == 1)
		r = FUSEE_CALL(fusee_python_push_coroutine, u, 0);
	return r ? stop_in_tasks(u, r) : FUSEE_AGAIN;
}

#endif
