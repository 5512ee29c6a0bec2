# SPDX-License-Identifier: Apache-2.0
# continued.rb LIBRARY MODE SECONDS: the same as continued.py, for the modes that it knows.
require "fiddle"

N = 200_000
LIBRARY, MODE, SECONDS = ARGV[0], ARGV[1], ARGV[2].to_f
LONG = Fiddle::TYPE_LONG
LIB = Fiddle.dlopen(LIBRARY)
RUN = Fiddle::Function.new(LIB["run"], [LONG], LONG)
STALE = Fiddle::Function.new(LIB["run_stale"], [Fiddle::TYPE_VOIDP, LONG, LONG], LONG)
BETWEEN = Fiddle::Function.new(LIB["run_between"], [Fiddle::TYPE_VOIDP, LONG], LONG)

def ended(depth)
  depth > 1 ? [depth - 1].map { |d| ended(d) }[0] : 0
end

def inner(n)
  s = 0
  n.times { |i| s += i }
  s & 0xffff
end

def called(n)
  inner(n)
end

def again(n)
  RUN.call(N)
  n
end

ENDED = Fiddle::Closure::BlockCaller.new(LONG, [LONG]) { |d| ended(d) }
CALLED = Fiddle::Closure::BlockCaller.new(LONG, [LONG]) { |n| called(n) }
AGAIN = Fiddle::Closure::BlockCaller.new(LONG, [LONG]) { |n| again(n) }

def five
  case MODE
  when "plain" then RUN.call(20 * N)
  when "between" then BETWEEN.call(CALLED, N / 20)
  when "both" then BETWEEN.call(AGAIN, 0)
  else STALE.call(ENDED, MODE.to_i, N)
  end
end

def four
  [1].map { five }
end

def three
  four
end

def two
  [1].each { three }
end

def one
  two
end

def main
  finish = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + SECONDS
  one while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < finish
end

main
