# SPDX-License-Identifier: Apache-2.0
"""Prints where this interpreter keeps what the python unwinder reads of asyncio's objects, as JSON: bytes from an object's
beginning. Each place is found by what is known to be in it."""
import asyncio
import ctypes
import functools
import json

PLACES = {}


def word(at):
    return ctypes.c_uint64.from_address(at).value


def find(name, holder, held, begin=16):
    """The first place in `holder` with the address `held`."""
    held = held if isinstance(held, int) else id(held)
    PLACES[name] = next((i for i in range(begin, 264, 8) if word(id(holder) + i) == held), None)


def slot(descriptor):
    """The place of an attribute that __slots__ names: `offset` in struct PyMemberDef, which the descriptor has behind its head."""
    return word(word(id(descriptor) + 40) + 16)


async def inner(future):
    await future


async def generator(future):
    await future
    yield


async def through_generator(future):
    async for _ in generator(future):
        pass


class Wrapped:
    def __init__(self, future):
        self.future = future

    def __await__(self):
        coroutine = inner(self.future)
        wrapper = coroutine.__await__()
        find("wrapped", wrapper, coroutine)
        return wrapper


async def through_wrapper(future):
    await Wrapped(future)


def frame_of(coroutine):
    """The address of its interpreter's frame: PyFrameObject.f_frame."""
    return word(id(coroutine.cr_frame) + 24)


async def awaiting(future, function):
    task = asyncio.create_task(function(future))
    await asyncio.sleep(0)
    return task


def one():
    x = 1
    return lambda: x


class Loop(asyncio.SelectorEventLoop):
    """Keeps the handles that are made."""
    handle = None

    def call_soon(self, *args, **kw):
        Loop.handle = super().call_soon(*args, **kw)
        return Loop.handle


async def main():
    future = asyncio.get_running_loop().create_future()
    task = await awaiting(future, inner)
    find("_fut_waiter", task, future)
    find("coroutine", task, task.get_coro())
    PLACES["frame"] = frame_of(task.get_coro()) - id(task.get_coro())
    PLACES["state"] = next((i for i in (-5,) if ctypes.c_int8.from_address(frame_of(task.get_coro()) + i).value == -1), None)
    find("callback", future, future._callbacks[0][0])
    find("builtin_self", future._callbacks[0][0], task)
    future.add_done_callback(print)
    find("items", (print, 5), print)
    # a list of a pair of which the first is print()
    PLACES["callbacks"] = next(i for i in range(32, 80, 8) if word(id(future) + i) not in (0, id(None)) and word(
        word(id(future) + i) + 8) == id(list) and word(word(word(word(id(future) + i) + 24)) + PLACES["items"]) == id(print))
    future.remove_done_callback(print)
    through = await awaiting(future, through_generator)
    find("iterated", through.get_coro().cr_await, through.get_coro().cr_await.ag_frame if hasattr(
        through.get_coro().cr_await, "ag_frame") else generator_of(through.get_coro()))
    await awaiting(future, through_wrapper)
    new = asyncio.create_task(inner(future))
    PLACES["handle_callback"] = slot(asyncio.Handle._callback)
    find("step_task", Loop.handle._callback, new)
    f, p = one(), functools.partial(print, 5)
    find("function_code", f, f.__code__)
    find("function_closure", f, f.__closure__)
    find("cell_contents", f.__closure__[0], 1)
    PLACES["cell_contents"] = 16 if word(id(f.__closure__[0]) + 16) == id(f.__closure__[0].cell_contents) else None
    find("method_self", task_of.method, task_of)
    find("partial_function", p, print)
    find("partial_arguments", p, p.args)
    PLACES["type_name"] = next(i for i in range(16, 64, 8) if name_at(word(id(asyncio.Task) + i)) == b"_asyncio.Task")
    PLACES["type_size"] = next(i for i in range(16, 64, 8) if word(id(asyncio.Task) + i) == asyncio.Task.__basicsize__)
    future.set_result(None)


def generator_of(coroutine):
    import gc
    return next(g for g in gc.get_objects() if type(g).__name__ == "async_generator" and g.ag_code is generator.__code__)


def name_at(address):
    if not 4096 < address < 1 << 47:
        return b""
    return ctypes.string_at(address, 13)


class TaskOf:
    def do(self):
        pass


task_of = TaskOf()
TaskOf.method = property(lambda self: METHOD)
METHOD = task_of.do
if hasattr(asyncio, "Runner"):
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main())
print(json.dumps(PLACES))
