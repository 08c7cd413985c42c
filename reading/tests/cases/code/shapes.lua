function M.b(x) end
function M:c() end
M.d = function() end