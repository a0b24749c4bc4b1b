// SPDX-License-Identifier: Apache-2.0
// Integers of any fixed width for running the kernel under an ordinary C++ compiler: the part of the vendors' ap_int.h
// that the kernel uses. ap_int<W> and ap_uint<W> hold exactly W bits and drop what does not fit, as hardware does; results of
// + - * are wide enough for every value, shifts keep the width of their left operand. Arithmetic up to 128 bits; wider
// numbers hold bits only (range, comparison).
#ifndef AP_INT_H
#define AP_INT_H

#include <cstdint>
#include <type_traits>

template <int W, bool S>
class ap_int_base;

namespace ap_detail {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

template <class T>
struct is_machine {
    static constexpr bool value =
        std::is_integral<T>::value || std::is_same<T, int128>::value || std::is_same<T, uint128>::value;
};

template <int W, bool S>
struct storage {
    using narrow_signed = typename std::conditional<(W <= 8), int8_t, int16_t>::type;
    using narrow_unsigned = typename std::conditional<(W <= 8), uint8_t, uint16_t>::type;
    using word_signed = typename std::conditional<(W <= 32), int32_t, int64_t>::type;
    using word_unsigned = typename std::conditional<(W <= 32), uint32_t, uint64_t>::type;
    using signed_64 = typename std::conditional<(W <= 16), narrow_signed, word_signed>::type;
    using unsigned_64 = typename std::conditional<(W <= 16), narrow_unsigned, word_unsigned>::type;
    using as_signed = typename std::conditional<(W <= 64), signed_64, int128>::type;
    using as_unsigned = typename std::conditional<(W <= 64), unsigned_64, uint128>::type;
    using type = typename std::conditional<S, as_signed, as_unsigned>::type;
};

// Width and sign of an operand: one of our integers, or a plain C++ integer.
template <class T>
struct traits {
    static_assert(std::is_integral<T>::value, "operands are integers");
    static constexpr int width = std::is_same<T, bool>::value ? 1 : 8 * static_cast<int>(sizeof(T));
    static constexpr bool is_signed = std::is_signed<T>::value;
    static constexpr T raw(T value) { return value; }
};

template <int W, bool S>
struct traits<ap_int_base<W, S>> {
    static constexpr int width = W;
    static constexpr bool is_signed = S;
    static constexpr typename storage<W, S>::type raw(const ap_int_base<W, S>& value) { return value.raw(); }
};

template <class T>
struct is_ours {
    template <int W, bool S>
    static std::true_type test(const ap_int_base<W, S>*);
    static std::false_type test(const void*);
    static constexpr bool value = decltype(test(static_cast<T*>(nullptr)))::value;
};

template <class T>
struct base_of {
    template <int W, bool S>
    static ap_int_base<W, S> test(const ap_int_base<W, S>*);
    static T test(const void*);
    using type = decltype(test(static_cast<T*>(nullptr)));
};

template <class A, class B>
using if_ours = typename std::enable_if<(is_ours<A>::value && (is_ours<B>::value || std::is_integral<B>::value)) ||
                                        (is_ours<B>::value && std::is_integral<A>::value)>::type;

// The narrowest type that holds both operands, and the results of the operators.
template <class A, class B>
struct pair {
    using TA = traits<typename base_of<A>::type>;
    using TB = traits<typename base_of<B>::type>;
    static constexpr bool is_signed = TA::is_signed || TB::is_signed;
    static constexpr int wa = TA::width + (is_signed && !TA::is_signed ? 1 : 0);
    static constexpr int wb = TB::width + (is_signed && !TB::is_signed ? 1 : 0);
    static constexpr int width = wa > wb ? wa : wb;
    static constexpr int product = TA::width + TB::width;
    static_assert(product <= 256 && width < 128, "arithmetic is limited to 128 bits");
    using common = typename storage<width, is_signed>::type;
    using sum = ap_int_base<width + 1, is_signed>;
    using difference = ap_int_base<width + 1, true>;
    using bits = ap_int_base<width, is_signed>;
};

}  // namespace ap_detail

// Some consecutive bits of a number, to read or to assign (at most 64 of them).
template <class N>
struct ap_range_ref {
    N& number;
    int hi;
    int lo;

    uint64_t get() const { return number.bits(hi, lo); }
    operator uint64_t() const { return get(); }
    ap_range_ref& operator=(uint64_t value) {
        number.set_bits(hi, lo, value);
        return *this;
    }
    template <int W, bool S>
    ap_range_ref& operator=(const ap_int_base<W, S>& value) {
        number.set_bits(hi, lo, static_cast<uint64_t>(value.raw()));
        return *this;
    }
    ap_range_ref& operator=(const ap_range_ref& other) { return *this = other.get(); }
    ap_range_ref(const ap_range_ref&) = default;
    ap_range_ref(N& number_, int hi_, int lo_) : number(number_), hi(hi_), lo(lo_) {}
};

namespace ap_detail {

// Up to 128 bits: one machine integer, always extended from W bits.
template <int W, bool S>
class small {
  public:
    using raw_t = typename storage<W, S>::type;
    using bits_t = typename storage<W, false>::type;

    constexpr raw_t raw() const { return value_; }

    uint64_t bits(int hi, int lo) const {
        const uint64_t mask = hi - lo == 63 ? ~uint64_t{0} : (uint64_t{1} << (hi - lo + 1)) - 1;
        return static_cast<uint64_t>(static_cast<bits_t>(value_) >> lo) & mask;
    }
    void set_bits(int hi, int lo, uint64_t value) {
        const uint64_t low = hi - lo == 63 ? ~uint64_t{0} : (uint64_t{1} << (hi - lo + 1)) - 1;
        const bits_t mask = static_cast<bits_t>(static_cast<bits_t>(low) << lo);
        const bits_t kept = static_cast<bits_t>(static_cast<bits_t>(value_) & static_cast<bits_t>(~mask));
        set(static_cast<bits_t>(kept | (static_cast<bits_t>(static_cast<bits_t>(value & low) << lo))));
    }

  protected:
    // Keep the low W bits of any machine integer.
    template <class T>
    constexpr void set(T value) {
        constexpr int spare = 8 * static_cast<int>(sizeof(raw_t)) - W;
        const bits_t low = static_cast<bits_t>(static_cast<bits_t>(value) << spare);
        value_ = static_cast<raw_t>(static_cast<raw_t>(low) >> spare);
    }

    raw_t value_;
};

// Wider: bits only, in 64-bit limbs, the lowest first.
template <int W>
class large {
  public:
    static_assert(W % 64 == 0, "numbers wider than 128 bits are whole 64-bit limbs");

    uint64_t bits(int hi, int lo) const {
        const uint64_t mask = hi - lo == 63 ? ~uint64_t{0} : (uint64_t{1} << (hi - lo + 1)) - 1;
        const int at = lo / 64, shift = lo % 64;
        uint64_t value = limbs_[at] >> shift;
        if (hi / 64 != at) value |= limbs_[at + 1] << (64 - shift);
        return value & mask;
    }
    void set_bits(int hi, int lo, uint64_t value) {
        for (int bit = lo; bit <= hi;) {
            const int at = bit / 64, shift = bit % 64;
            const int count = (hi - bit + 1) < (64 - shift) ? (hi - bit + 1) : (64 - shift);
            const uint64_t mask = (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << shift;
            limbs_[at] = (limbs_[at] & ~mask) | (((value >> (bit - lo)) << shift) & mask);
            bit += count;
        }
    }
    bool operator==(const large& other) const {
        for (int at = 0; at < W / 64; ++at)
            if (limbs_[at] != other.limbs_[at]) return false;
        return true;
    }
    bool operator!=(const large& other) const { return !(*this == other); }

  protected:
    void set(uint64_t value) {
        limbs_[0] = value;
        for (int at = 1; at < W / 64; ++at) limbs_[at] = 0;
    }

    uint64_t limbs_[W / 64];
};

}  // namespace ap_detail

template <int W, bool S>
class ap_int_base : public std::conditional<(W <= 128), ap_detail::small<(W <= 128 ? W : 128), S>,
                                            ap_detail::large<(W > 128 ? W : 192)>>::type {
  public:
    static constexpr int width = W;

#ifdef OPENVTA_POISON
    // Hardware starts with anything; a value nobody set should be seen.
    ap_int_base() {
        for (int lo = 0; lo < W; lo += 32) this->set_bits(lo + 32 < W ? lo + 31 : W - 1, lo, 0xA5C3A5C3u);
    }
#else
    ap_int_base() = default;
#endif
    template <class T, class = typename std::enable_if<ap_detail::is_machine<T>::value>::type>
    constexpr ap_int_base(T value) : ap_int_base(value, 0) {}
    template <int W2, bool S2>
    constexpr ap_int_base(const ap_int_base<W2, S2>& other) : ap_int_base(other.raw(), 0) {}
    template <class N>
    ap_int_base(const ap_range_ref<N>& range) : ap_int_base(range.get(), 0) {}
    constexpr ap_int_base(const ap_int_base&) = default;
    ap_int_base& operator=(const ap_int_base&) = default;

    template <class T, class = typename std::enable_if<ap_detail::is_machine<T>::value>::type>
    constexpr operator T() const {
        return static_cast<T>(this->raw());
    }
    constexpr int to_int() const { return static_cast<int>(this->raw()); }
    constexpr unsigned to_uint() const { return static_cast<unsigned>(this->raw()); }
    constexpr int64_t to_int64() const { return static_cast<int64_t>(this->raw()); }
    constexpr uint64_t to_uint64() const { return static_cast<uint64_t>(this->raw()); }

    ap_range_ref<ap_int_base> range(int hi, int lo) { return {*this, hi, lo}; }
    ap_range_ref<const ap_int_base> range(int hi, int lo) const { return {*this, hi, lo}; }
    bool test(int bit) const { return this->bits(bit, bit) != 0; }

    template <class B>
    ap_int_base& operator+=(const B& other) {
        return *this = *this + other;
    }
    template <class B>
    ap_int_base& operator-=(const B& other) {
        return *this = *this - other;
    }
    ap_int_base operator-() const { return ap_int_base(0) - *this; }

  private:
    template <class T>
    constexpr ap_int_base(T value, int) {
        this->set(value);
    }
};

#define AP_OPERATOR(op, result)                                                                                    \
    template <class A, class B, class = ap_detail::if_ours<A, B>>                                                  \
    constexpr typename ap_detail::pair<A, B>::result operator op(const A& a, const B& b) {                         \
        using R = typename ap_detail::pair<A, B>::result;                                                          \
        using C = decltype(R().raw());                                                                             \
        return R(static_cast<C>(static_cast<C>(ap_detail::traits<typename ap_detail::base_of<A>::type>::raw(a)) op \
                                    static_cast<C>(ap_detail::traits<typename ap_detail::base_of<B>::type>::raw(b)))); \
    }
AP_OPERATOR(+, sum)
AP_OPERATOR(-, difference)
AP_OPERATOR(&, bits)
AP_OPERATOR(|, bits)
AP_OPERATOR(^, bits)
#undef AP_OPERATOR

template <int W1, bool S1, int W2, bool S2>
constexpr ap_int_base<W1 + W2, S1 || S2> operator*(const ap_int_base<W1, S1>& a, const ap_int_base<W2, S2>& b) {
    static_assert(W1 + W2 <= 128, "products are limited to 128 bits");
    using C = typename ap_detail::storage<W1 + W2, S1 || S2>::type;
    return ap_int_base<W1 + W2, S1 || S2>(static_cast<C>(static_cast<C>(a.raw()) * static_cast<C>(b.raw())));
}

#define AP_COMPARE(op)                                                                           \
    template <class A, class B, class = ap_detail::if_ours<A, B>>                                \
    constexpr bool operator op(const A& a, const B& b) {                                         \
        using C = typename ap_detail::pair<A, B>::common;                                        \
        return static_cast<C>(ap_detail::traits<typename ap_detail::base_of<A>::type>::raw(a)) op \
               static_cast<C>(ap_detail::traits<typename ap_detail::base_of<B>::type>::raw(b));  \
    }
AP_COMPARE(==)
AP_COMPARE(!=)
AP_COMPARE(<)
AP_COMPARE(<=)
AP_COMPARE(>)
AP_COMPARE(>=)
#undef AP_COMPARE

// Shifts keep the width of the left operand; amounts are 0 .. W - 1.
template <int W, bool S>
constexpr ap_int_base<W, S> operator>>(const ap_int_base<W, S>& a, unsigned amount) {
    return ap_int_base<W, S>(static_cast<typename ap_detail::storage<W, S>::type>(a.raw() >> amount));
}
template <int W, bool S>
constexpr ap_int_base<W, S> operator<<(const ap_int_base<W, S>& a, unsigned amount) {
    using U = typename ap_detail::storage<W, false>::type;
    return ap_int_base<W, S>(static_cast<U>(static_cast<U>(a.raw()) << amount));
}

template <int W>
class ap_int : public ap_int_base<W, true> {
  public:
    using ap_int_base<W, true>::ap_int_base;
    ap_int() = default;
    template <int W2, bool S2>
    constexpr ap_int(const ap_int_base<W2, S2>& other) : ap_int_base<W, true>(other) {}
};

template <int W>
class ap_uint : public ap_int_base<W, false> {
  public:
    using ap_int_base<W, false>::ap_int_base;
    ap_uint() = default;
    template <int W2, bool S2>
    constexpr ap_uint(const ap_int_base<W2, S2>& other) : ap_int_base<W, false>(other) {}
};

#endif  // AP_INT_H
