  -- Checks the penalty of the charge in the line before this line (limit/penalty.hpp). While the penalty runs, this
  -- line does not fit, and the charge is not made. While no penalty runs, the charge is a violation if it does not fit.
  -- The violation is written although the bill is refused.
  --
  -- State: the byte of the kind; the end of the last penalty (0: none); the number of violations; the times of these
  -- violations; the times at which earlier penalties began. Each time has seven bytes, and the number has one byte.
  --
  -- `fitted`: true if the charge fits; nil if weir must ask again with other calendar windows. `first`: the length of
  -- a first penalty. `kept`: how many of the latest penalties the state remembers.
  --
  -- Answer: the end of the penalty that runs or begins, or 0. Then 1 if the penalty begins now, else 0. Then the number
  -- of violations that count towards the next penalty.
  local function check_penalty(i, fitted, after, first, grows, most, forget, kept)
    local state = states[i]
    local finish, violations, begins = 0, {}, {}
    if state and #state >= 9 and byte(state) == Kind.Penalty then
      local violation_count
      finish, violation_count = take('<I7B', state, 2)
      for at = 10, #state - 6, 7 do
        local of = (at - 10) / 7 < violation_count and violations or begins
        local event = take('<I7', state, at)
        if now - event < forget then
          of[#of + 1] = event
        end
      end
    end
    if finish > now then
      answer(i, finish, 0)
      aheads[i - 1] = nil
      return false
    end
    if fitted ~= false then
      answer(i, 0, 0, #violations)
      return true
    end
    if #violations + 1 >= after then
      local length = first
      for _ = 1, #begins do
        if grows > 1 and length < most then
          length = length * grows
        end
      end
      finish = now + min(length, most)
      begins[#begins + 1] = now
      violations = {}
      answer(i, finish, 1)
    else
      violations[#violations + 1] = now
      answer(i, 0, 0, #violations)
    end
    local pieces, last = { pack('<BI7B', Kind.Penalty, finish, #violations) }, finish
    for at = 1, #violations do
      pieces[#pieces + 1], last = pack('<I7', violations[at]), max(last, violations[at] + forget)
    end
    for at = max(#begins - kept, 0) + 1, #begins do
      pieces[#pieces + 1], last = pack('<I7', begins[at]), max(last, begins[at] + forget)
    end
    nexts[i], aheads[i] = concat(pieces), last - now
    known.written_if_refused = known.written_if_refused or {}
    known.written_if_refused[i] = true
    return false
  end
