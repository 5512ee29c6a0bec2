# SPDX-License-Identifier: Apache-2.0
# ruby_lines.rb LINES.so [MOST]: holds the decoder of the ruby unwinder against the interpreter that runs this
# file: for each instruction of each iseq of the standard library (the first MOST files). Prints a JSON object.
require "fiddle"
require "json"
require "objspace"
require "rbconfig"

LINE = Fiddle::Function.new(Fiddle.dlopen(ARGV[0])["line_of"],
                            [Fiddle::TYPE_VOIDP, Fiddle::TYPE_LONG, Fiddle::TYPE_LONG], Fiddle::TYPE_LONG)
COUNTS = {files: 0, iseqs: 0, instructions: 0, without: 0, wrong: 0, first: nil}

# [position, line, does a row begin here] of each instruction, by the interpreter's own array form, which leaves
# out rows without a line
def own_lines(iseq)
  at = 0
  line = nil
  begins = false
  iseq.to_a[13].each do |item|
    case item
    when Integer
      line = item
      begins = true
    when Array
      yield at, line, begins
      at += item.size
      begins = false
    end
  end
end

def address(iseq)
  JSON.parse(ObjectSpace.dump(iseq))["references"].each do |at|
    return at.hex
  end
end

def check(iseq)
  at = address(iseq)
  COUNTS[:iseqs] += 1
  own_lines(iseq) do |position, line, begins|
    COUNTS[:instructions] += 1
    found = LINE.call(RUBY_VERSION, at, position)
    COUNTS[:without] += 1 if found == 0
    next if found == (line || 0) || (found == 0 && !begins)
    COUNTS[:wrong] += 1
    COUNTS[:first] ||= "#{iseq.path}:#{iseq.label}: word #{position}: line #{found}, not #{line}"
  end
  iseq.each_child { |child| check(child) }
end

most = (ARGV[1] || 1 << 30).to_i
Dir[File.join(RbConfig::CONFIG["rubylibdir"], "**/*.rb")].sort.first(most).each do |path|
  begin
    check(RubyVM::InstructionSequence.compile_file(path))
    COUNTS[:files] += 1
  rescue SyntaxError
  end
end
puts JSON.generate(COUNTS)
