;; A module that does what its arguments say: a list of whole numbers, each instruction followed by its operands.
;;
;;   0 value                    return the value from `execute` or `resume`, and go on behind it with the next `resume`
;;   1 name length args length  begin a request
;;   2 level text length        write to the log
;;   3 address length           ask for random bytes
;;   4 address byte length      fill memory
;;   5 pages                    grow the memory
;;   6                          read the clock
;;   7 address                  let `allocate` return this from now on
;;
;; Behind the last number it waits. Numbers are kept from 65536 on; texts that the host writes begin at 131072.
(module
  (import "quarterdeck" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "quarterdeck" "log" (func $log (param i32 i32 i32)))
  (import "quarterdeck" "now" (func $now (result i64)))
  (import "quarterdeck" "random" (func $random (param i32 i32)))
  (memory (export "memory") 3)
  (data (i32.const 16) "kb.search[\"ice\"]store.get[\"k\"]{\"ok\":true,\"data\":7}")
  (global $count (mut i32) (i32.const 0))
  (global $position (mut i32) (i32.const 0))
  (global $allocation (mut i32) (i32.const 131072))

  (func (export "allocate") (param i32) (result i32) (global.get $allocation))

  ;; Reads every number between the first `[` and the `]` after it.
  (func $parse (param $at i32) (param $length i32)
    (local $end i32) (local $byte i32) (local $number i64) (local $in_number i32) (local $in_list i32)
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $byte (i32.load8_u (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (if (i32.eq (local.get $byte) (i32.const 91)) (then (local.set $in_list (i32.const 1)) (br $next)))
        (br_if $next (i32.eqz (local.get $in_list)))
        (if (i32.lt_u (i32.sub (local.get $byte) (i32.const 48)) (i32.const 10))
          (then
            (local.set $in_number (i32.const 1))
            (local.set $number
              (i64.add
                (i64.mul (local.get $number) (i64.const 10))
                (i64.extend_i32_u (i32.sub (local.get $byte) (i32.const 48)))))
            (br $next)))
        (if (local.get $in_number)
          (then
            (i64.store
              (i32.add (i32.const 65536) (i32.mul (global.get $count) (i32.const 8)))
              (local.get $number))
            (global.set $count (i32.add (global.get $count) (i32.const 1)))
            (local.set $number (i64.const 0))
            (local.set $in_number (i32.const 0))))
        (br_if $done (i32.eq (local.get $byte) (i32.const 93)))
        (br $next))))

  (func $operand (result i64)
    (local $value i64)
    (if (i32.lt_u (global.get $position) (global.get $count))
      (then
        (local.set $value
          (i64.load (i32.add (i32.const 65536) (i32.mul (global.get $position) (i32.const 8)))))))
    (global.set $position (i32.add (global.get $position) (i32.const 1)))
    (local.get $value))

  (func $word (result i32) (i32.wrap_i64 (call $operand)))

  (func $go_on (result i64)
    (local $instruction i32)
    (loop $next
      (if (i32.ge_u (global.get $position) (global.get $count)) (then (return (i64.const 0))))
      (local.set $instruction (call $word))
      (if (i32.eqz (local.get $instruction)) (then (return (call $operand))))
      (if (i32.eq (local.get $instruction) (i32.const 1))
        (then (drop (call $call (call $word) (call $word) (call $word) (call $word)))))
      (if (i32.eq (local.get $instruction) (i32.const 2))
        (then (call $log (call $word) (call $word) (call $word))))
      (if (i32.eq (local.get $instruction) (i32.const 3)) (then (call $random (call $word) (call $word))))
      (if (i32.eq (local.get $instruction) (i32.const 4))
        (then (memory.fill (call $word) (call $word) (call $word))))
      (if (i32.eq (local.get $instruction) (i32.const 5)) (then (drop (memory.grow (call $word)))))
      (if (i32.eq (local.get $instruction) (i32.const 6)) (then (drop (call $now))))
      (if (i32.eq (local.get $instruction) (i32.const 7)) (then (global.set $allocation (call $word))))
      (br $next))
    (unreachable))

  (func (export "execute") (param $at i32) (param $length i32) (result i64)
    (call $parse (local.get $at) (local.get $length))
    (call $go_on))

  (func (export "resume") (param i32 i32 i32) (result i64) (call $go_on)))
