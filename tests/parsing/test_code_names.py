"""Names of symbols that are more than one word: operators, receivers, functions that are values."""

from __future__ import annotations

import re

import pytest

from kebab.parsing.code import CodeParser

# Each line on which a symbol begins says its full name after `//=`, `#=` or `--=`.
NAMED: dict[str, str] = {
    "a.swift": """\
struct V: Equatable { //= V
    static func + (a: V, b: V) -> V { //= V.+
        return a
    }
    static func == (a: V, b: V) -> Bool { //= V.==
        return true
    }
    prefix static func - (a: V) -> V { return a } //= V.-
    static func * (a: V, b: V) -> V { //= V.*
        return a
    }
    static func <+> (a: V, b: V) { //= V.<+>
    }
    func generic<T>(_ x: T) -> T { x } //= V.generic
    subscript(i: Int) -> Int { 1 } //= V.subscript
    deinit { } //= V.deinit
}
protocol P { //= P
    static func < (a: Self, b: Self) -> Bool //= P.<
    func plain() -> Int //= P.plain
}
func <*> (a: Int, b: Int) -> Int { //= <*>
    return a
}
extension V.Inner: Q { //= V.Inner
    func f() {} //= V.Inner.f
}
""",
    "a.cs": """\
public class A<T> //= A
{
    ~A() //= A.~A
    {
    }
    public static A operator +(A a, A b) //= A.operator +
    {
        return a;
    }
    public static bool operator ==(A a, A b) => true; //= A.operator ==
    public static A operator *(A a, A b) => a; //= A.operator *
    public static bool operator true(A a) => true; //= A.operator true
    public static implicit operator int(A a) //= A.operator int
    {
        return 1;
    }
    public static explicit operator A<T>(string a) => null; //= A.operator A<T>
    public int this[int i] //= A.this
    {
        get { return 1; }
    }
    void IFoo.Bar() { } //= A.Bar
}
""",
    "a.js": """\
const api = { //= api
  beta: function () { //= api.beta
  },
  gamma() { //= api.gamma
  },
  delta: async () => { //= api.delta
  },
  "quoted-key": function () { //= api.quoted-key
  },
  nested: { //= api.nested
    inner() { //= api.nested.inner
    },
  },
};
const settings = { a: 1, pick: (x) => x.y };

Foo.prototype.bar = function () { //= Foo.bar
};
Foo.of = (a) => a; //= Foo.of
Foo.prototype = { //= Foo
  baz: function () { //= Foo.baz
  },
};
const Card = React.memo(() => { //= Card
});
export const Input = forwardRef(function Input(props, ref) { //= Input
});
const Both = memo(forwardRef((props, ref) => { //= Both
}));
const values = items.map((item) => {
  return item;
});

module.exports.x = function () { //= x
};
exports.y = async () => { //= y
};
window.App = class { //= App
  start() { //= App.start
  }
};
const Shape = class extends Base { //= Shape
  area() { //= Shape.area
  }
};
module.exports = class Tree { //= Tree
  grow() { //= Tree.grow
  }
};
var old = function named() { //= old
};
$.fn.plug = function () { //= $.fn.plug
};
export default function () { //= default
}
""",
    "a.ts": """\
export const api: Api = { //= api
  gamma<T>(x: T): T { //= api.gamma
    return x;
  },
};
const checked = { //= checked
  run() { //= checked.run
  },
} satisfies Runner;
export const Card = React.memo<Props>(() => { //= Card
});
export default class { //= default
  start(): void { //= default.start
  }
}
Foo.prototype.bar = function (this: Foo) { //= Foo.bar
};
""",
    "a.tsx": """\
export const Card = forwardRef<Element, Props>((props, ref) => { //= Card
  return <div />;
});
export const pages = { //= pages
  Home: () => { //= pages.Home
    return <div />;
  },
};
""",
    "a.rs": """\
impl Trait for &mut X { //= X
    fn f(&self) {} //= X.f
}
impl<'a, T: Clone> Trait<T> for &'a Y<T> { //= Y
    fn f(&self) {} //= Y.f
}
impl<T> Trait for *const Z { //= Z
    fn f(&self) {} //= Z.f
}
impl Trait for Box<dyn Foo> { //= Box
    fn f(&self) {} //= Box.f
}
impl dyn Foo { //= Foo
    fn g(&self) {} //= Foo.g
}
impl Trait for [u8] { //= [u8]
    fn f(&self) {} //= [u8].f
}
impl Trait for (A, B) { //= (A, B)
    fn f(&self) {} //= (A, B).f
}
impl std::ops::Add for a::b::W { //= a.b.W
    fn add(self) {} //= a.b.W.add
}
""",
    "a.cpp": """\
struct A { //= A
    A& operator=(const A& o) { //= A.operator=
    }
    int operator()(int a) const { //= A.operator()
    }
    explicit operator std::string() const { return ""; } //= A.operator std::string
    A operator*(int a) { //= A.operator*
    }
    A* operator&() { return this; } //= A.operator&
    friend std::ostream& operator<<(std::ostream& s, const A& a) { //= A.operator<<
    }
};
A::~A() { //= A.~A
}
void A::b(int x) { //= A.b
}
A::operator int() const { //= A.operator int
}
int A::operator ()(int x) { //= A.operator ()
}
template <typename T> //= ns.B.c
std::vector<T> ns::B<T>::c(int x) {
}
A B<T>::operator+(A a) { //= B.operator+
}
const char** twice() { //= twice
}
T*& both() { //= both
}
void do_operator(int a) { //= do_operator
}
""",
    "a.c": """\
int (*get(void))(int) { //= get
}
int (wrapped)(int a) { //= wrapped
}
char ***deep(void) { //= deep
}
int old(a, b) //= old
    int a;
{
}
""",
    "a.kt": """\
class V(val x: Int) { //= V
    operator fun plus(o: V): V = V(1) //= V.plus
    companion object Factory { //= V
        fun make(): V = V(1) //= V.make
    }
    infix fun <T> then(o: T): T = o //= V.then
    fun `with space`() { //= V.with space
    }
}
operator fun V.minus(o: V): V { //= minus
    return o
}
""",
    "a.rb": """\
class V #= V
  def ==(o) #= V.==
    true
  end
  def [](i) #= V.[]
  end
  def *(o) #= V.*
  end
  def name=(v) #= V.name=
  end
  def ok? #= V.ok?
  end
  def self.find(x) #= V.find
  end
  private def hidden #= V.hidden
  end
end
class A::B #= A.B
  def x #= A.B.x
  end
end
def V.static #= V.static
end
Point = Struct.new(:x) do #= Point
  def far #= Point.far
  end
end
""",
    "a.php": """\
<?php
class V //= V
{
    public function __construct(private int $x) //= V.__construct
    {
    }
    public static function &ref(): array //= V.ref
    {
    }
}
function &byref() { //= byref
}
""",
    "a.go": """\
package a
func (s *S) Pointer() { //= S.Pointer
}
func (S) NoName() { //= S.NoName
}
func (s *G[K, V]) Generic() { //= G.Generic
}
var h = func() { //= h
}
""",
    "a.scala": """\
class V(x: Int) { //= V
  def +(o: V): V = o //= V.+
  def unary_- : V = this //= V.unary_-
  def `odd name`() = 1 //= V.odd name
}
package object po { //= po
  def p = 1 //= po.p
}
""",
    "a.lua": """\
local M = { --= M
  f = function(a) --= M.f
  end,
}
function M.a.b(x) --= M.a.b
end
return {
  setup = function() --= setup
  end,
}
""",
    "a.py": """\
type Pair[T] = tuple[T, T] #= Pair
class B[T](A): #= B
    def __eq__[U](self, u: U) -> U: #= B.__eq__
        return u
""",
    "a.sh": """\
my-func() ( #= my-func
  echo
)
function ns::f { #= ns.f
  echo
}
""",
}


MARK = re.compile(r"(?://|#|--)= (.*)")


def begun(path: str, text: str) -> list[tuple[int, str]]:
    """The line on which each symbol begins, and its name; but not where a symbol goes on after one that is inside it."""
    found: list[tuple[int, str]] = []
    known: set[str | None] = {None}
    lines = text.split("\n")
    for block in CodeParser().parse(text.encode(), path).blocks:
        row = text.count("\n", 0, block.start)
        if block.title and (block.title not in known or MARK.search(lines[row])):
            found.append((row + 1, block.title))
        known.add(block.title)
    return found


@pytest.mark.parametrize("path", NAMED)
def test_symbols_have_the_names_that_people_use(path: str) -> None:
    text = NAMED[path]
    marked = [(number, MARK.search(line)) for number, line in enumerate(text.split("\n"), 1)]
    assert begun(path, text) == [(number, mark[1]) for number, mark in marked if mark]
