#include "weir/observe/counters.hpp"

namespace weir::observe {

Counters::Counters(const Shape& shape)
    : shape_(shape),
      requests_((shape.routes + 1) * kStatusSlots),
      decisions_(shape.rules),
      settlements_(shape.rules),
      messages_(shape.rules),
      denied_here_(shape.rules),
      upstreams_(shape.upstreams) {}

}  // namespace weir::observe
