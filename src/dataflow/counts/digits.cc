#include "dataflow/counts/digits.h"

#include <map>
#include <numeric>
#include <set>

#include "base/text.h"

namespace sator::dataflow {

namespace {

constexpr Wide kLargest = Wide{1} << 62;

/// coefficient . digits + constant[piece]
struct Affine {
  std::vector<int64_t> coefficient;
  std::vector<int64_t> constant;
};

/// An iterator's values 0 .. extent-1 as digits, and as disjoint boxes of them.
struct Radix {
  std::vector<int64_t> weights;  // ascending, the first is 1
  std::vector<Box> boxes;
};

/// Weights that divide each other in turn, from moduli that need not. Moduli that do not divide share one
/// digit, whose values are then cut at their multiples.
std::vector<int64_t> divisor_chain(const std::set<int64_t>& moduli, int64_t extent) {
  std::vector<int64_t> chain{1};
  for (int64_t m : moduli) {
    int64_t top = m;
    while (top % chain.back() != 0) {
      Wide common = static_cast<Wide>(top) / std::gcd(top, chain.back()) * chain.back();
      top = common < extent ? static_cast<int64_t>(common) : extent;
      chain.pop_back();
      if (top == extent) break;
    }
    if (top >= extent) {
      // No digit above: the last one takes all that is left, and is cut.
      while (m % chain.back() != 0) chain.pop_back();
      break;
    }
    if (top != chain.back()) chain.push_back(top);
  }
  return chain;
}

void append_boxes(const std::vector<int64_t>& weights, size_t level, int64_t extent, Box& box, std::vector<Box>& out) {
  int64_t full = extent / weights[level], rest = extent % weights[level];
  auto below_full = [&](Box& b) {
    for (size_t k = 0; k < level; ++k) b[k] = {0, weights[k + 1] / weights[k] - 1};
  };
  if (full > 0) {
    box[level] = {0, full - 1};
    below_full(box);
    out.push_back(box);
  }
  if (rest > 0) {
    box[level] = {full, full};
    append_boxes(weights, level - 1, rest, box, out);
  }
}

class Builder {
 public:
  Builder(Domain domain, std::vector<QuasiAffine> expressions, const DigitLimits& limits)
      : domain_(std::move(domain)),
        expressions_(std::move(expressions)),
        limits_(limits),
        moduli_(static_cast<size_t>(domain_.rank())) {
    for (const QuasiAffine& e : expressions_) expect_moduli(e);
  }

  std::variant<DigitForm, Reason> run() {
    // Each round either resolves everything, or learns a modulus, a cut or a fusion and starts again.
    for (int round = 0; round < 256; ++round) {
      refusal_.reset();
      fused_ = false;
      learned_.clear();
      if (!build_pieces()) return *refusal_;
      bool learned = false;
      std::vector<Affine> resolved;
      resolved.reserve(expressions_.size());
      for (size_t e = 0; e < expressions_.size() && !refusal_ && !fused_; ++e) {
        again_ = false;
        resolved.push_back(resolve(expressions_[e]));
        learned |= again_;
      }
      if (refusal_) return *refusal_;
      if (!learned) return finish(resolved);
    }
    return Reason{.what = "the moduli of one iterator keep asking for new digits",
                  .needs = "floors and remainders by constants that resolve into digits",
                  .hint = "use tile sizes that divide each other"};
  }

 private:
  bool refuse(Reason reason) {
    if (!refusal_) refusal_ = std::move(reason);
    return false;
  }

  /// The moduli of floor(x / m), x % m and floor(x / m) % q, which most maps are made of, without a round of
  /// learning.
  void expect_moduli(const QuasiAffine& e) {
    for (const Term& t : e.terms) {
      if (!t.division) continue;
      Wide modulus = t.division->divisor;
      const QuasiAffine* inner = &t.division->inner;
      while (inner->constant == 0 && inner->terms.size() == 1 && inner->terms[0].coefficient == 1 &&
             inner->terms[0].division && !inner->terms[0].division->remainder && modulus < kLargest) {
        modulus *= inner->terms[0].division->divisor;
        inner = &inner->terms[0].division->inner;
      }
      if (inner->constant == 0 && inner->terms.size() == 1 && inner->terms[0].coefficient == 1 &&
          !inner->terms[0].division) {
        const size_t x = static_cast<size_t>(inner->terms[0].variable);
        if (domain_.lower[x] == 0 && modulus < domain_.extent[x]) moduli_[x].insert(static_cast<int64_t>(modulus));
      }
      expect_moduli(t.division->inner);
    }
  }

  bool build_pieces() {
    digits_.clear();
    std::vector<Radix> parts;
    Wide count = 1;
    for (int x = 0; x < domain_.rank(); ++x) {
      Radix part;
      const int64_t extent = domain_.extent[static_cast<size_t>(x)];
      if (extent > 1) {
        part.weights = divisor_chain(moduli_[static_cast<size_t>(x)], extent);
        Box box(part.weights.size());
        append_boxes(part.weights, part.weights.size() - 1, extent, box, part.boxes);
      } else if (extent == 1) {
        part.boxes.emplace_back();
      }
      for (size_t k = 0; k < part.weights.size(); ++k) {
        if (auto at = cuts_.find({x, part.weights[k]}); at != cuts_.end()) cut(part, k, at->second);
        digits_.push_back({x, part.weights[k]});
      }
      count *= part.boxes.size();
      if (count > static_cast<Wide>(limits_.pieces))
        return refuse({.what = text("the domain falls into more than ", limits_.pieces, " boxes of digits"),
                       .needs = "fewer ragged edges or moduli that divide each other",
                       .hint = "choose tile sizes that divide the extents"});
      parts.push_back(std::move(part));
    }
    pieces_.assign(1, Box{});
    for (const Radix& part : parts) {
      std::vector<Box> longer;
      longer.reserve(pieces_.size() * part.boxes.size());
      for (const Box& head : pieces_)
        for (const Box& tail : part.boxes) {
          longer.push_back(head);
          longer.back().insert(longer.back().end(), tail.begin(), tail.end());
        }
      pieces_.swap(longer);
    }
    largest_.assign(digits_.size(), 0);
    for (const Box& piece : pieces_)
      for (size_t k = 0; k < digits_.size(); ++k) largest_[k] = std::max(largest_[k], piece[k].hi);
    return true;
  }

  static void cut(Radix& part, size_t digit, const std::set<int64_t>& positions) {
    for (int64_t at : positions) {
      std::vector<Box> finer;
      for (Box& box : part.boxes) {
        if (box[digit].lo < at && at <= box[digit].hi) {
          Box low = box;
          low[digit].hi = at - 1;
          finer.push_back(std::move(low));
          box[digit].lo = at;
        }
        finer.push_back(std::move(box));
      }
      part.boxes.swap(finer);
    }
  }

  Affine resolve(const QuasiAffine& e) {
    Affine sum{std::vector<int64_t>(digits_.size(), 0), std::vector<int64_t>(pieces_.size(), e.constant)};
    for (const Term& t : e.terms) {
      if (t.division) {
        Affine inner = resolve(t.division->inner);
        if (again_ || refusal_) return sum;
        Affine atom = divide(inner, *t.division);
        if (again_ || refusal_) return sum;
        for (size_t k = 0; k < digits_.size(); ++k)
          sum.coefficient[k] = checked(sum.coefficient[k] + static_cast<Wide>(t.coefficient) * atom.coefficient[k]);
        for (size_t p = 0; p < pieces_.size(); ++p)
          sum.constant[p] = checked(sum.constant[p] + static_cast<Wide>(t.coefficient) * atom.constant[p]);
        continue;
      }
      for (size_t k = 0; k < digits_.size(); ++k)
        if (digits_[k].iterator == t.variable)
          sum.coefficient[k] = checked(sum.coefficient[k] + static_cast<Wide>(t.coefficient) * digits_[k].weight);
      Wide base = static_cast<Wide>(t.coefficient) * domain_.lower[static_cast<size_t>(t.variable)];
      if (base != 0)
        for (int64_t& c : sum.constant) c = checked(c + base);
    }
    return sum;
  }

  int64_t checked(Wide v) {
    if (v < kLargest && v > -kLargest) return static_cast<int64_t>(v);
    refuse({.what = "a coordinate does not fit 62 bits",
            .needs = "coordinates below 2^62",
            .hint = "use smaller extents or coefficients"});
    return 0;
  }

  Affine divide(const Affine& a, const Division& division) {
    const int64_t m = division.divisor;
    // a = m * upper + lower: what m divides leaves the floor as it is, the rest must stay within one period.
    std::vector<int64_t> upper(digits_.size(), 0), lower(digits_.size(), 0);
    for (size_t k = 0; k < digits_.size(); ++k) {
      const int64_t c = a.coefficient[k];
      if (c % m == 0) {
        upper[k] = c / m;
        continue;
      }
      const int64_t period = m / std::gcd(std::abs(c), m);
      if (largest_[k] >= period) {
        Wide modulus = static_cast<Wide>(digits_[k].weight) * period;
        if (modulus < domain_.extent[static_cast<size_t>(digits_[k].iterator)] &&
            learn(digits_[k].iterator, static_cast<int64_t>(modulus))) {
          again_ = true;
          continue;
        }
      }
      lower[k] = floor_remainder(c, m);
      if (lower[k] > m / 2) lower[k] -= m;
      upper[k] = (c - lower[k]) / m;
    }
    Affine result{division.remainder ? std::move(lower) : std::move(upper), std::vector<int64_t>(pieces_.size())};
    if (again_) return result;
    const std::vector<int64_t>& low = division.remainder ? result.coefficient : lower;
    for (size_t p = 0; p < pieces_.size(); ++p) {
      Range range = range_of(low, a.constant[p], pieces_[p]);
      if (range.lo < -kLargest || range.hi > kLargest) {
        checked(kLargest);
        return result;
      }
      int64_t first = floor_quotient(static_cast<int64_t>(range.lo), m);
      int64_t last = floor_quotient(static_cast<int64_t>(range.hi), m);
      if (first != last) {
        cut_or_fuse(low, range, p, division);
        continue;
      }
      result.constant[p] = division.remainder ? a.constant[p] - m * first : first;
    }
    return result;
  }

  /// Whether the digits of the next round have a modulus that those of this one lack. Several expressions may ask for it in
  /// one round: none of them cuts the digits that are there, which are gone then.
  bool learn(int iterator, int64_t modulus) {
    if (moduli_[static_cast<size_t>(iterator)].insert(modulus).second) {
      learned_.insert({iterator, modulus});
      for (auto& [key, positions] : cuts_)
        if (key.first == iterator) positions.clear();
    }
    return learned_.contains({iterator, modulus});
  }

  /// Several digits move in piece p, and the coarsest alone decides the quotient: the others never carry into it. Cuts that
  /// digit wherever the quotient changes. False if the others do carry.
  bool cut_coarsest(const std::vector<int64_t>& low, const Range& range, size_t p, int64_t divisor) {
    size_t k = low.size();
    for (size_t i = 0; i < low.size(); ++i)
      if (low[i] != 0 && pieces_[p][i].size() > 1 && (k == low.size() || std::abs(low[i]) > std::abs(low[k]))) k = i;
    const Interval span = pieces_[p][k];
    if (span.size() > limits_.cuts_per_digit * 4) return false;
    const Wide c = low[k], swing = c * (span.size() - 1);
    // What the other digits add, with the coarsest at its lower end.
    const Wide least = range.lo - std::min<Wide>(swing, 0), most = range.hi - std::max<Wide>(swing, 0);
    auto quotient = [&](Wide v) { return floor_quotient(static_cast<int64_t>(v), divisor); };
    std::vector<int64_t> changes;
    int64_t before = 0;
    for (int64_t v = span.lo; v <= span.hi; ++v) {
      const Wide at = c * (v - span.lo);
      const int64_t now = quotient(least + at);
      if (now != quotient(most + at)) return false;
      if (v > span.lo && now != before) changes.push_back(v);
      before = now;
    }
    auto& positions = cuts_[{digits_[k].iterator, digits_[k].weight}];
    positions.insert(changes.begin(), changes.end());
    if (static_cast<int64_t>(positions.size()) > limits_.cuts_per_digit) return false;
    again_ = true;
    return true;
  }

  /// The quotient of `low` changes inside of piece p: cut the digit there, or fuse the two iterators that
  /// form one.
  void cut_or_fuse(const std::vector<int64_t>& low, const Range& range, size_t p, const Division& division) {
    int moving = -1, how_many = 0;
    for (size_t k = 0; k < low.size(); ++k)
      if (low[k] != 0 && pieces_[p][k].size() > 1) moving = static_cast<int>(k), ++how_many;
    if (how_many > 1) {
      if (fuse(division.inner)) {
        again_ = fused_ = true;
        return;
      }
      if (cut_coarsest(low, range, p, division.divisor)) return;
      refuse({.what = text(division.remainder ? "the remainder (" : "the floor (",
                           to_text(division.inner, domain_.names),
                           division.remainder ? ") % " : ") / ",
                           division.divisor,
                           " mixes several iterators"),
              .needs = "the numerator's parts below the divisor together stay within one period",
              .hint = "give the digits of one iterator to each floor and remainder"});
      return;
    }
    const size_t k = static_cast<size_t>(moving);
    const Interval span = pieces_[p][k];
    const int64_t c = low[k], m = division.divisor;
    const int64_t at_lo = static_cast<int64_t>(c > 0 ? range.lo : range.hi);  // value at the digit's lower end
    auto quotient = [&](int64_t v) { return floor_quotient(at_lo + c * (v - span.lo), m); };
    auto& positions = cuts_[{digits_[k].iterator, digits_[k].weight}];
    int64_t v = span.lo;
    while (quotient(v) != quotient(span.hi)) {
      // The next value with another quotient, by halving: quotients are monotone in v.
      int64_t lo = v, hi = span.hi;
      while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        (quotient(mid) == quotient(v) ? lo : hi) = mid;
      }
      v = hi;
      positions.insert(v);
      if (static_cast<int64_t>(positions.size()) > limits_.cuts_per_digit) {
        refuse({.what = text("iterator ",
                             domain_.names[static_cast<size_t>(digits_[k].iterator)],
                             " is divided by moduli that do not divide each other"),
                .needs = text("at most ", limits_.cuts_per_digit, " cuts"),
                .hint = "use tile and group sizes of which one divides the other"});
        return;
      }
    }
    again_ = true;
  }

  /// x + X*y, with x in [0, X), is one iterator l of extent X*Y: x = l % X, y = floor(l / X).
  bool fuse(const QuasiAffine& e) {
    for (const Term& inner : e.terms)
      for (const Term& outer : e.terms) {
        if (inner.division || outer.division || inner.variable == outer.variable) continue;
        const size_t x = static_cast<size_t>(inner.variable), y = static_cast<size_t>(outer.variable);
        const int64_t size = domain_.extent[x];
        if (static_cast<Wide>(inner.coefficient) * size != outer.coefficient || size < 2 || domain_.extent[y] < 2 ||
            domain_.lower[x] != 0 || domain_.lower[y] != 0 || static_cast<Wide>(size) * domain_.extent[y] > kLargest)
          continue;
        std::vector<QuasiAffine> replacement;
        for (int v = 0; v < domain_.rank(); ++v) replacement.push_back(variable(v));
        replacement[x] = mod(variable(inner.variable), size);
        replacement[y] = floor_div(variable(inner.variable), size);
        for (QuasiAffine& expression : expressions_) expression = substitute(expression, replacement);
        domain_.extent[x] *= domain_.extent[y];
        domain_.extent[y] = 1;
        moduli_[x].clear();
        moduli_[y].clear();
        cuts_.clear();
        return true;
      }
    return false;
  }

  /// Every partial sum of every row stays far inside of 64 bits, so that later steps need not check.
  bool fits(const DigitForm& form) {
    for (const DigitForm::Piece& piece : form.pieces)
      for (size_t e = 0; e < form.rows.size(); ++e) {
        Wide sum = piece.constants[e] < 0 ? -static_cast<Wide>(piece.constants[e]) : piece.constants[e];
        for (size_t k = 0; k < digits_.size(); ++k)
          sum += static_cast<Wide>(std::abs(form.rows[e][k])) *
                 std::max(std::abs(piece.box[k].lo), std::abs(piece.box[k].hi));
        if (sum > kLargest / 4) {
          checked(kLargest);
          return false;
        }
      }
    return true;
  }

  std::variant<DigitForm, Reason> finish(std::vector<Affine>& resolved) {
    DigitForm form;
    form.digits = digits_;
    const size_t guards = domain_.guards.size(), kept = resolved.size() - guards;
    for (size_t e = 0; e < kept; ++e) form.rows.push_back(std::move(resolved[e].coefficient));
    for (size_t p = 0; p < pieces_.size(); ++p) {
      std::vector<Box> inside{pieces_[p]};
      for (size_t g = kept; g < resolved.size(); ++g) {
        std::vector<Box> next;
        for (const Box& box : inside)
          if (!slice(box, resolved[g].coefficient, resolved[g].constant[p], {0, INT64_MAX}, limits_.pieces, next))
            return Reason{.what = text("the domain's guards leave more than ", limits_.pieces, " boxes of digits"),
                          .needs = "a box, or guards that cut few tiles",
                          .hint = "use larger tiles or a smaller domain"};
        inside.swap(next);
      }
      if (form.pieces.size() + inside.size() > limits_.pieces)
        return Reason{.what = text("the domain falls into more than ", limits_.pieces, " boxes of digits"),
                      .needs = "a box, or guards that cut few tiles",
                      .hint = "use larger tiles or a smaller domain"};
      std::vector<int64_t> constants;
      for (size_t e = 0; e < kept; ++e) constants.push_back(resolved[e].constant[p]);
      for (Box& box : inside) form.pieces.push_back({std::move(box), constants});
    }
    if (!fits(form)) return *refusal_;
    return form;
  }

  Domain domain_;
  std::vector<QuasiAffine> expressions_;  // the caller's, then the guards
  DigitLimits limits_;
  std::vector<std::set<int64_t>> moduli_;                      // per iterator
  std::set<std::pair<int, int64_t>> learned_;                  // (iterator, modulus) in this round
  std::map<std::pair<int, int64_t>, std::set<int64_t>> cuts_;  // per (iterator, weight)
  std::vector<DigitForm::Digit> digits_;
  std::vector<Box> pieces_;
  std::vector<int64_t> largest_;  // per digit, over all pieces
  bool again_ = false, fused_ = false;
  std::optional<Reason> refusal_;
};

}  // namespace

std::variant<DigitForm, Reason> to_digits(const Domain& domain, std::span<const QuasiAffine* const> expressions,
                                          const DigitLimits& limits) {
  std::vector<QuasiAffine> all;
  all.reserve(expressions.size() + domain.guards.size());
  for (const QuasiAffine* e : expressions) all.push_back(*e);
  all.insert(all.end(), domain.guards.begin(), domain.guards.end());
  return Builder(domain, std::move(all), limits).run();
}

}  // namespace sator::dataflow
