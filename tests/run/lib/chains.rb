# SPDX-License-Identifier: Apache-2.0
# chains.rb TEST [SECONDS]: runs until it is killed, or for SECONDS of CPU time. Each test has one set of chains of calls; tests/run/ruby knows them.
ITEMS = (1..40).to_a.shuffle(random: Random.new(1))

def burn(n)
  x = 0
  i = 0
  while i < n
    x += i * i
    i += 1
  end
  x
end

# what is hot is the way between C and Ruby
def inner(x)
  x
end

def middle(x)
  ITEMS.sort_by { |y| inner(y) }
  x
end

def hot
  ITEMS.sort_by { |x| middle(x) }
end

def deep(n)
  n.zero? ? burn(400) : deep(n - 1)
end

def through_c(n)
  return burn(100) if n.zero?
  [n].each { |k| through_c(k - 1) }
end

def fails
  burn(50)
  raise "expected"
end

def rescues
  [1].each { fails }
rescue RuntimeError
  burn(50)
ensure
  burn(20)
end

class Dynamic
  define_method(:defined) { |n| burn(n) }
  def method_missing(_name, n)
    burn(n)
  end

  def respond_to_missing?(*)
    true
  end
end

def dynamic
  d = Dynamic.new
  d.defined(300)
  d.missing(300)
end

def fiber
  f = Fiber.new do
    loop { Fiber.yield burn(200) }
  end
  10.times { f.resume }
end

# methods of all kinds of owners; two owners of one method
module Outer
  class Deep
    def instance
      burn(100)
    end

    def self.single
      [1].each { burn(100) }
    end

    class << self
      def second
        burn(100)
      end
    end
  end

  module_function

  def shared
    burn(100)
  end
end

class Includes
  include Outer
  def calls
    shared
  end
end

ANONYMOUS = [Class.new { def nameless() burn(100) end }.new, Object.new]
def (ANONYMOUS[1]).own
  burn(100)
end

def owners
  Outer::Deep.new.instance
  Outer::Deep.single
  Outer::Deep.second
  Outer.shared
  Includes.new.calls
  ANONYMOUS[0].nameless
  ANONYMOUS[1].own
end

def first_thread
  burn(2000)
end

def second_thread
  [1].each { burn(2000) }
end

def run(test)
  case test
  when "hot" then loop { hot }
  when "deep" then loop { deep(300) }
  when "deep1500" then loop { deep(1500) }
  when "through_c" then loop { through_c(60) }
  when "exceptions" then loop { rescues }
  when "dynamic" then loop { dynamic }
  when "fibers" then loop { fiber }
  when "owners" then loop { owners }
  when "ractors"
    a = Ractor.new { loop { first_thread } }
    b = Ractor.new { loop { second_thread } }
    [a, b].each(&:take)
  when "threads"
    a = Thread.new { loop { first_thread } }
    b = Thread.new { loop { second_thread } }
    [a, b].each(&:join)
  end
end

Process.setrlimit(Process::RLIMIT_CPU, ARGV[1].to_i, ARGV[1].to_i) if ARGV[1]
run(ARGV[0])
